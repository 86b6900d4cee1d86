package kinds

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rule is a rule of RBAC, or of what an admission policy matches.
var rule = regexp.MustCompile(`apiGroups: \[([^\]]*)\]\n(?:\s+(?:apiVersions|operations): .*\n)*\s+resources: \[([^\]]*)\]`)

// The rights of the controller, the policies that limit writes, injection and the pages name the kinds of this table, and no others.
func TestEveryListOfKindsIsThisOne(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", path)) //nolint:gosec // a file of the project
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	groups := map[string]bool{}
	want := make([]string, 0, len(BuiltIn()))
	for _, k := range BuiltIn() {
		want, groups[k.Group] = append(want, k.Resource+"."+k.Group), true
	}
	slices.Sort(want)
	for _, path := range []string{
		"config/controller/clusterrole.yaml", "config/assign/controller.yaml", "config/policy/policy.yaml", "charts/idalloc/templates/rbac.yaml",
		"charts/idalloc/files/policy/policy.yaml", "charts/idalloc/files/assign/controller.yaml",
	} {
		found := map[string]bool{}
		for _, m := range rule.FindAllStringSubmatch(read(path), -1) {
			for resource := range strings.SplitSeq(m[2], ", ") {
				if groups[m[1]] && !strings.Contains(resource, "/") {
					found[resource+"."+m[1]] = true
				}
			}
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			t.Errorf("%s has rules for %q, want %q", path, got, want)
		}
	}
	for path, sentence := range map[string]string{
		"config/inject/refusal.yaml": "put it into a " + Any, "config/assign/refusal.yaml": "put it into a " + Any, "docs/words.md": "the " + Any + " whose annotations",
	} {
		if !strings.Contains(read(path), sentence) {
			t.Errorf("%s does not say %q", path, sentence)
		}
	}
	for _, k := range BuiltIn() {
		if path := "config/policy/events.yaml"; !strings.Contains(read(path), "'"+k.Kind+"'") {
			t.Errorf("%s lacks kind %s", path, k.Kind)
		}
	}
}
