package enable

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func objectOf(t *testing.T, text string) unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestASecondWorkloadOfOneAccountIsNamed(t *testing.T) {
	bound := func(account, role string) unstructured.Unstructured {
		return objectOf(t, "{metadata: {name: b}, roleRef: {kind: Role, name: "+role+"}, subjects: [{kind: ServiceAccount, name: "+account+"}]}")
	}
	marked := objectOf(t, `{metadata: {name: other-idalloc}, rules: [{apiGroups: [apps], resources: [deployments], resourceNames: [other], verbs: [get, patch]},
  {apiGroups: [idalloc.dev], resources: [slots], verbs: [allocate]}]}`)
	unmarked := objectOf(t, `{metadata: {name: deployer}, rules: [{apiGroups: [apps], resources: [deployments], resourceNames: [other], verbs: [patch]}]}`)
	roles := []unstructured.Unstructured{marked, unmarked}
	plan := Plan{Account: "shop", Role: account}
	if says := plan.Shared([]unstructured.Unstructured{bound("shop", "other-idalloc")}, roles); len(says) != 1 || !strings.Contains(says[0], "deployments/other") {
		t.Errorf("it says %q", says)
	}
	for name, b := range map[string]unstructured.Unstructured{
		"another account":    bound("else", "other-idalloc"),
		"a Role for no ids":  bound("shop", "deployer"),
		"the workload's own": bound("shop", account),
	} {
		if says := plan.Shared([]unstructured.Unstructured{b}, roles); len(says) > 0 {
			t.Errorf("%s: it says %q", name, says)
		}
	}
	agents := Plan{Account: "shop", Role: "worker-idalloc-agent", PeersRole: account}
	if says := agents.Shared([]unstructured.Unstructured{bound("shop", account)}, roles); len(says) != 1 || !strings.Contains(says[0], "delete the Role and its RoleBinding") {
		t.Errorf("of the Role of peers it says %q", says)
	}
}
