package packing

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestThePackageIsPure(t *testing.T) {
	const placement = "github.com/idalloc/idalloc/pkg/placement"
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	imports := strings.Fields(string(out))
	if !slices.Contains(imports, placement) {
		t.Fatalf("the list of imports is not what it should be: %v", imports)
	}
	for _, path := range imports {
		if strings.Contains(path, ".") && path != placement {
			t.Errorf("the package imports %s", path)
		}
	}
	for _, path := range []string{"context", "math/rand", "math/rand/v2", "net", "net/http", "os", "sync", "time"} {
		if slices.Contains(imports, path) {
			t.Errorf("the package imports %s", path)
		}
	}
}
