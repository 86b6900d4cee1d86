package tutorial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	// patience is many times what the longest step needs.
	patience = 3 * time.Minute
	pace     = 200 * time.Millisecond
)

// page is one that is run.
type page struct {
	document string
	// program is the example that the page deploys: its directory in examples, and its image. example is its folder in config/examples. Without them,
	// the page needs the controller.
	program, example string
}

// addresses stands in for the folder of the example, which it takes from beside it. All pods of the process node have one
// network, so each of them listens on an address of its own.
const addresses = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../as-shipped
patches:
  - target:
      kind: Deployment
    patch: |-
      - op: add
        path: /spec/template/spec/containers/0/env/-
        value: {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
      - op: add
        path: /spec/template/spec/containers/0/env/-
        value: {name: HTTP_ADDRESS, value: "$(POD_IP):8080"}
`

func TestThePagesAreTrue(t *testing.T) {
	for _, p := range []page{{document: "docs/tutorial.md"}, {"docs/linked.md", "linkedworker", "linked"}, {"docs/partitions.md", "partitionworker", "partitions"}} {
		t.Run(p.document, p.isTrue)
	}
}

func (p page) isTrue(t *testing.T) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, p.document)) //nolint:gosec // a file of the project
	if err != nil {
		t.Fatal(err)
	}
	all, err := steps(string(text))
	if err != nil {
		t.Fatal(p.document, err)
	}
	r := newReader(t, root, p)
	for _, s := range all {
		start := time.Now()
		if err := r.follow(t.Context(), s); err != nil {
			t.Fatalf("%s:%d: %v", p.document, s.line, err)
		}
		t.Logf("%s:%d: %s after %v", p.document, s.line, strings.SplitN(s.script, "\n", 2)[0], time.Since(start).Round(time.Millisecond))
	}
}

// reader follows the page in a directory of its own.
type reader struct {
	dir   string
	env   []string
	names names
}

// newReader starts a control plane with what the page takes for granted: kubectl, idalloc, the image, and the files of config.
func newReader(t *testing.T, root string, p page) *reader {
	t.Helper()
	programs, dir := t.TempDir(), t.TempDir()
	options := suite.Options{Log: testr.New(t), BoundTokens: true, Controller: p.program == ""}
	if p.program != "" {
		worker, err := suite.Build(t.Context(), programs, "./examples/"+p.program)
		if err != nil {
			t.Fatal(err)
		}
		options.Images = map[string]string{"registry.example.com/idalloc/" + p.program: worker}
	}
	if _, err := suite.Build(t.Context(), programs, "./cmd/kubectl-idalloc"); err != nil {
		t.Fatal(err)
	}
	env, err := suite.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := env.ControlPlane.Kubeconfig(controlplane.Admin)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Symlink(env.Binary, filepath.Join(programs, "idalloc")), os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(root, "config"))))
	if err == nil && p.example != "" {
		err = overlay(filepath.Join(dir, "config", "examples"), p.example)
	}
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{programs, env.ControlPlane.Assets(), os.Getenv("PATH")}, string(os.PathListSeparator))
	return &reader{dir: dir, names: names{}, env: []string{"PATH=" + path, "KUBECONFIG=" + kubeconfig, "HOME=" + dir, "LC_ALL=C"}}
}

// overlay puts addresses in the place of an example.
func overlay(examples, example string) error {
	return errors.Join(
		os.Rename(filepath.Join(examples, example), filepath.Join(examples, "as-shipped")),
		os.Mkdir(filepath.Join(examples, example), 0o700),
		os.WriteFile(filepath.Join(examples, example, "kustomization.yaml"), []byte(addresses), 0o600),
	)
}

// follow does a step, and does it again until it prints what the page shows.
func (r *reader) follow(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(pace)
	defer again.Stop()
	for {
		printed, err := r.run(ctx, s.script)
		if len(s.printed) == 0 {
			return err
		}
		if err == nil {
			err = r.names.fits(s.printed, printed)
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("%s: %w; it printed\n%s", s.script, err, printed)
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// run returns what a script prints to stdout. Its error has what it printed to stderr.
func (r *reader) run(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script) //nolint:gosec // the project's own page
	cmd.Dir, cmd.Env = r.dir, slices.Clone(r.env)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(out), err
}
