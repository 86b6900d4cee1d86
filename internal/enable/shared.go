package enable

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/internal/fields"
	"github.com/idalloc/idalloc/internal/inject"
)

// Shared returns notes about other permissions of the plan's account, from the RoleBindings and Roles of its namespace: other workloads whose keys it may
// write, and a Role that still permits it to write this workload although agents need none.
func (p Plan) Shared(bindings, roles []unstructured.Unstructured) (notes []string) {
	var others []string
	for i := range bindings {
		to, _, _ := unstructured.NestedString(bindings[i].Object, "roleRef", "name")
		kind, _, _ := unstructured.NestedString(bindings[i].Object, "roleRef", "kind")
		if to == p.Role || kind != "Role" || !isFor(bindings[i].Object, p.Account) {
			continue
		}
		if to == p.PeersRole {
			notes = append(notes, fmt.Sprintf("Role %s permits the account to write the workload, which only pods without label %s: %s need: when none of them runs any more, "+
				"delete the Role and its RoleBinding", to, inject.AssignLabel, inject.ByAgent))
			continue
		}
		for j := range roles {
			if roles[j].GetName() == to {
				others = append(others, workloads(roles[j].Object)...)
			}
		}
	}
	if len(others) == 0 {
		return notes
	}
	slices.Sort(others)
	return append(notes, fmt.Sprintf("account %s may write idalloc's keys of %s already: from now on a copied token of one workload's pod can disturb the ids of the other; "+
		"give each workload an account of its own", p.Account, strings.Join(slices.Compact(others), ", ")))
}

// isFor reports whether a binding has the account as a subject.
func isFor(binding map[string]any, account string) bool {
	return slices.ContainsFunc(fields.Objects(binding, "subjects"), func(s map[string]any) bool { return s["kind"] == "ServiceAccount" && s["name"] == account })
}

// workloads returns the objects that a Role with idalloc's mark permits to patch, as resource/name.
func workloads(role map[string]any) []string {
	var names []string
	marked := false
	for _, m := range fields.Objects(role, "rules") {
		resources, _, _ := unstructured.NestedStringSlice(m, "resources")
		verbs, _, _ := unstructured.NestedStringSlice(m, "verbs")
		marked = marked || slices.Contains(resources, "slots") && slices.Contains(verbs, "allocate")
		objects, _, _ := unstructured.NestedStringSlice(m, "resourceNames")
		for _, name := range objects {
			if slices.Contains(verbs, "patch") && len(resources) > 0 {
				names = append(names, resources[0]+"/"+name)
			}
		}
	}
	if !marked {
		return nil
	}
	return names
}
