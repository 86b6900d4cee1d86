package kinds

import (
	"cmp"
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

// read returns the text of a file of the project.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", path)) //nolint:gosec // a file of the project
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ruled returns the kinds, such as "jobs.batch", that the rules of a text name in the groups of this table.
func ruled(text string) []string {
	found := map[string]bool{}
	for _, m := range rule.FindAllStringSubmatch(text, -1) {
		for resource := range strings.SplitSeq(m[2], ", ") {
			if slices.ContainsFunc(BuiltIn(), func(k Kind) bool { return k.Group == m[1] }) && !strings.Contains(resource, "/") {
				found[resource+"."+m[1]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// The rights of the controller, the policies that limit writes, injection and the pages name the kinds of this table, and no others.
func TestEveryListOfKindsIsThisOne(t *testing.T) {
	want := make([]string, 0, len(BuiltIn()))
	for _, k := range BuiltIn() {
		want = append(want, k.Resource+"."+k.Group)
	}
	slices.Sort(want)
	for _, path := range []string{
		"config/controller/clusterrole.yaml", "config/assign/controller.yaml", "config/policy/policy.yaml", "charts/idalloc/templates/rbac.yaml",
		"charts/idalloc/files/policy/policy.yaml", "charts/idalloc/files/assign/controller.yaml",
	} {
		if got := ruled(read(t, path)); !slices.Equal(got, want) {
			t.Errorf("%s has rules for %q, want %q", path, got, want)
		}
	}
	// The Roles of one workload are written for a Deployment. Its pods also read the ReplicaSets between them and it.
	for _, path := range []string{"config/base/role.yaml", "config/component/account.yaml"} {
		if got := ruled(read(t, path)); !slices.Equal(got, []string{"deployments.apps", "replicasets.apps"}) {
			t.Errorf("%s has rules for %q", path, got)
		}
	}
	resources := make([]string, 0, len(BuiltIn()))
	for _, k := range BuiltIn() {
		resources = append(resources, k.Resource)
	}
	for path, sentence := range map[string]string{
		"docs/operations.md":         "kubectl get " + strings.Join(resources, ",") + " ",
		"config/inject/refusal.yaml": "put it into a " + Any, "config/assign/refusal.yaml": "put it into a " + Any, "docs/words.md": "the " + Any + " whose annotations",
	} {
		if !strings.Contains(read(t, path), sentence) {
			t.Errorf("%s does not say %q", path, sentence)
		}
	}
	for _, k := range BuiltIn() {
		if path := "config/policy/events.yaml"; !strings.Contains(read(t, path), "'"+k.Kind+"'") {
			t.Errorf("%s lacks kind %s", path, k.Kind)
		}
		group := map[string]string{Job: "batch"}[k.Kind]
		if k.Group != cmp.Or(group, "apps") || k.Resource != strings.ToLower(k.Kind)+"s" {
			t.Errorf("the policies of config/policy work out group and resource of a kind from its name (grep for 'batch' there), and err with %s.%s", k.Resource, k.Group)
		}
	}
}

// That page lists the files of config that name kinds. A person who adds a kind needs the list.
func TestThePageOfAnotherKindNamesEachFileOfConfig(t *testing.T) {
	const page = "docs/architecture.md"
	_, door, begun := strings.Cut(read(t, page), "**What does another kind need**")
	door, _, ended := strings.Cut(door, "\n**")
	if !begun || !ended {
		t.Fatalf("%s does not say what another kind needs", page)
	}
	root := filepath.Join("..", "..", "..")
	paths, err := filepath.Glob(filepath.Join(root, "config", "*", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files of config: %v", err)
	}
	for _, at := range paths {
		path, err := filepath.Rel(root, at)
		if err != nil {
			t.Fatal(err)
		}
		if text := read(t, path); len(ruled(text)) == 0 && !strings.Contains(text, Any) {
			continue
		}
		if !strings.Contains(door, "`"+path+"`") && !strings.Contains(door, "`"+filepath.Dir(path)+"`") {
			t.Errorf("%s does not name %s, which has kinds", page, path)
		}
	}
}
