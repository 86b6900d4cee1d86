package pages_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// ranges lists versions as a page does: 1.30 and 1.34 to 1.37.
func ranges(t *testing.T, all []controlplane.Minor) string {
	t.Helper()
	var list []string
	for i := 0; i < len(all); {
		first, last := i, i
		for ; i < len(all); i++ {
			var of, is int
			if _, err := fmt.Sscanf(all[first].Name()+" "+all[i].Name(), "1.%d 1.%d", &of, &is); err != nil {
				t.Fatal(err)
			}
			if is-of != i-first {
				break
			}
			last = i
		}
		if list = append(list, all[first].Name()); last > first {
			list[len(list)-1] += " to " + all[last].Name()
		}
	}
	text, end := strings.Join(list[:len(list)-1], ", "), list[len(list)-1]
	if text == "" {
		return end
	}
	return text + " and " + end
}

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
		"README.md": {fmt.Sprintf("It runs on Kubernetes %s to %s.", oldest, newest), "the label, inject, agents and `idalloc run` on\n [each version]"},
		"docs/operations.md": {
			"control planes of " + ranges(t, all) + ", and",
			"| " + since(func(m controlplane.Minor) bool { return m.EnvFiles }) + " | a variable can come from a file",
			"| " + mutating + " | policies complete pods",
			"| " + since(func(m controlplane.Minor) bool { return m.MaxUnavailable }) + " | StatefulSets have `maxUnavailable`",
		},
		"docs/controller.md":        {"## Before Kubernetes " + mutating},
		"charts/idalloc/Chart.yaml": {`kubeVersion: ">=` + oldest + `.0-0"`},
		"internal/check/check.go":   {`oldest = "` + oldest + `"`, `mutating = "` + mutating + `"`, fmt.Sprintf(`untested = "1.%d"`, next+1)},
	} {
		text := regexp.MustCompile(` +`).ReplaceAllString(read(t, page), " ")
		for _, want := range says {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", page, want)
			}
		}
	}
}
