package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/placement"
)

// The script of the page prints the names of what a pod owns, whatever form the set has.
func TestTheScriptNamesThePartitionsThatThePodOwns(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/partitions.md"), "\n### Names\n")
	_, script, _ := strings.Cut(section, "\n```sh\n")
	script, _, found := strings.Cut(script, "\n```\n")
	if !found {
		t.Fatal("the page has no script")
	}
	for want, owned := range map[string]placement.Set{
		"":                 {},
		"US\n":             placement.Of(1),
		"CA\nUS\nDE\nBR\n": placement.Of(0, 1, 2, 4),
		"CA\nBR\n":         placement.Of(0, 3, 4), // the name in line 4 has ended
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"partitions": owned.String() + "\n", "names": "CA\nUS\nDE\n\nBR\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		here := strings.NewReplacer("/var/run/idalloc/", dir+"/", "/etc/partitions/", dir+"/").Replace(script)
		out, err := exec.CommandContext(t.Context(), "sh", "-euc", here).CombinedOutput() //nolint:gosec // the page's own script
		if err != nil || string(out) != want {
			t.Errorf("of %q it prints %q, want %q: %v", owned, out, want, err)
		}
	}
}
