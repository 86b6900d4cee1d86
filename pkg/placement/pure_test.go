package placement

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestThePackageIsPure(t *testing.T) {
	const self = "github.com/idalloc/idalloc/pkg/placement"
	linked := goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}")
	if !slices.Equal(linked, []string{self}) {
		t.Errorf("the package links more than the standard library: %v", linked)
	}
	imports := goList(t, "-f", `{{join .Imports "\n"}}`)
	if !slices.Contains(imports, "fmt") {
		t.Fatalf("the list of imports is not what it should be: %v", imports)
	}
	for _, p := range []string{"context", "math/rand", "math/rand/v2", "net", "net/http", "os", "sync", "time"} {
		if slices.Contains(imports, p) {
			t.Errorf("the package imports %s", p)
		}
	}
}

// goList returns the lines that go list prints for this package.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output() //nolint:gosec // fixed arguments
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Fields(string(out))
}
