package check

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

// A release of the chart names policies and account after itself.
func TestTheControllersPoliciesHaveTheNameOfItsRelease(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	d := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "one-idalloc-controller", "namespace": "tenants", "labels": map[string]any{"app.kubernetes.io/name": "idalloc-controller"}},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"serviceAccountName": "ids", "containers": []any{map[string]any{"args": []any{"--namespace=a", "--namespace=b"}}},
		}}},
	}}
	d.SetGroupVersionKind(gvk)
	scheme := runtime.NewScheme()
	c := checker{Options{Namespace: "b", Dynamic: fake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{
		gvk.GroupVersion().WithResource("deployments"): "DeploymentList",
	}, d)}}
	f, err := c.controller(t.Context())
	if err != nil || f.account != "ids" || f.namespace != "tenants" {
		t.Fatalf("%v: found %+v", err, f)
	}
	names := map[string]bool{}
	for _, p := range policies(f) {
		names[p.name] = true
	}
	for _, want := range []string{"idalloc", "one-idalloc-assign", "one-idalloc-controller"} {
		if !names[want] {
			t.Errorf("there is no policy %s: %v", want, names)
		}
	}
	binding := &unstructured.Unstructured{Object: map[string]any{"kind": "ValidatingAdmissionPolicyBinding", "spec": map[string]any{
		"policyName": "p", "validationActions": []any{"Deny"}, "matchResources": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}},
	}}}
	if why := flaw(binding, "p", true); why != "" {
		t.Errorf("a tenant's binding %s", why)
	}
	if flaw(binding, "p", false) == "" {
		t.Error("a binding for all namespaces may leave some out")
	}
}
