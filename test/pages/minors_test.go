package pages_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// What pages and check say of versions is what the nightly suite runs on.
func TestTheVersionsOfKubernetesAreThoseOfTheTable(t *testing.T) {
	all, err := controlplane.Minors()
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	oldest, newest, next := all[0].Name(), all[len(all)-1].Name(), 0
	if _, err := fmt.Sscanf(newest, "1.%d", &next); err != nil {
		t.Fatal(err)
	}
	since := func(has func(controlplane.Minor) bool) string {
		i := slices.IndexFunc(all, has)
		for _, m := range all[i:] {
			if !has(m) {
				t.Errorf("%s lost what %s had", m.Version, all[i].Version)
			}
		}
		return all[i].Name()
	}
	mutating := since(func(m controlplane.Minor) bool { return m.MutatingPolicies })
	for page, says := range map[string][]string{
		"README.md": {fmt.Sprintf("It runs on Kubernetes %s to %s.", oldest, newest)},
		"docs/operations.md": {
			fmt.Sprintf("control planes of %s to %s", oldest, newest),
			"| " + since(func(m controlplane.Minor) bool { return m.EnvFiles }) + " | a variable can come from a file",
			"| " + mutating + " | policies complete pods",
			"| " + since(func(m controlplane.Minor) bool { return m.MaxUnavailable }) + " | StatefulSets have `maxUnavailable`",
		},
		"docs/controller.md":        {"## Before Kubernetes " + mutating},
		"charts/idalloc/Chart.yaml": {`kubeVersion: ">=` + oldest + `.0-0"`},
		"internal/check/check.go": {
			fmt.Sprintf(`oldest = "%s.0"`, oldest), fmt.Sprintf(`mutating = "%s.0"`, mutating), fmt.Sprintf(`untested = "1.%d.0"`, next+1),
			fmt.Sprintf("not tested on 1.%d or later", next+1), "idalloc needs " + oldest + " or later", "before " + mutating + " a webhook",
		},
	} {
		text := regexp.MustCompile(` +`).ReplaceAllString(read(t, page), " ")
		for _, want := range says {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", page, want)
			}
		}
	}
}
