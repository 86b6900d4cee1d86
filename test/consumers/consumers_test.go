package consumers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// patience is many times what the tests need.
const patience = 10 * time.Minute

// One control plane serves all tests, and they run side by side: most of the time each waits for Kubernetes.
func TestConsumers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	env, err := suite.Start(ctx, suite.Options{Images: map[string]string{
		"ghcr.io/idalloc/rabbitmq": build(ctx, t, "examples/rabbitmq"), "ghcr.io/idalloc/postgres": build(ctx, t, "examples/postgres"),
	}})
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	tests := map[string]func(context.Context, *testing.T, *suite.Suite){
		"snowflake":  testSnowflake,
		"prometheus": testPrometheus,
		"python":     testPython,
		"node":       testNode,
		"copied":     testCopied,
	}
	if !testing.Short() { // its program is large to build
		tests["vmagent"] = testVmagent
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(ctx, t, env)
		})
	}
}

// build compiles a package in a folder that is a module of its own, and returns the program's path.
func build(ctx context.Context, t *testing.T, module string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(module))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, ".") //nolint:gosec // of the project's own module
	cmd.Dir = folder(t, module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", module, err, output)
	}
	return program
}

// folder returns a path in this repository.
func folder(t *testing.T, elements ...string) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	must(t, err)
	return filepath.Join(append([]string{root}, elements...)...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
