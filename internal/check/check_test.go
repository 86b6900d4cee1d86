package check

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A policy that config has and check does not look at could be missing, and check would say that all is in order.
func TestEachPolicyOfConfigIsAPart(t *testing.T) {
	parts := policies(found{name: controllerName})
	kind := regexp.MustCompile(`(?m)^kind: (Mutating|Validating)AdmissionPolicy\nmetadata:\n  name: (.+)$`)
	for _, folder := range []string{"policy", "assign"} {
		paths, err := filepath.Glob("../../config/" + folder + "/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, path := range paths {
			text, err := os.ReadFile(path) //nolint:gosec // a file of the project
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range kind.FindAllStringSubmatch(string(text), -1) {
				found++
				if !slices.ContainsFunc(parts, func(p policy) bool {
					return p.folder == folder && p.name == m[2] && p.mutating == (m[1] == "Mutating")
				}) {
					t.Errorf("%s: check does not look at %sAdmissionPolicy %s", path, m[1], m[2])
				}
			}
		}
		if found == 0 {
			t.Errorf("config/%s has no policy", folder)
		}
	}
}

// Pods wait for each right of the controller but that to write Events.
func TestEachRightOfTheControllerIsAsked(t *testing.T) {
	text, err := os.ReadFile("../../config/controller/clusterrole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role struct {
		Rules []struct{ APIGroups, Resources, Verbs []string }
	}
	if err := yaml.Unmarshal(text, &role); err != nil {
		t.Fatal(err)
	}
	granted, asked := []string{}, make([]string, 0, len(needed()))
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			name, sub, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				if name != "events" {
					granted = append(granted, Right{Verb: verb, Group: rule.APIGroups[0], Resource: name, Subresource: sub}.String())
				}
			}
		}
	}
	for _, r := range needed() {
		asked = append(asked, r.String())
	}
	slices.Sort(granted)
	slices.Sort(asked)
	if !slices.Equal(granted, asked) {
		t.Errorf("the controller may\n%s\nand check asks for\n%s", strings.Join(granted, ", "), strings.Join(asked, ", "))
	}
}
