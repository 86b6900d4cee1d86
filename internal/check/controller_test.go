package check

import (
	"strings"
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

// A tenant's release may have its own policies that inject sidecars. If not, those of all namespaces do it.
func TestWhichPoliciesInject(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}
	named := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
		o.SetGroupVersionKind(gvk)
		return o
	}
	for want, f := range map[string]found{
		"one-idalloc-inject": {name: "one-idalloc-controller", namespaces: []string{"shop"}},
		sidecars:             {name: "two-idalloc-controller", namespaces: []string{"shop"}},
	} {
		c := checker{Options{Namespace: "shop", Dynamic: fake.NewSimpleDynamicClient(runtime.NewScheme(), named("one-idalloc-inject"), named(sidecars))}}
		got, err := c.injects(t.Context(), f)
		if err != nil || got != want {
			t.Errorf("of %s: %q, not %q: %v", f.name, got, want, err)
		}
		f.injects = got
		for _, p := range policies(f) {
			if p.folder == "inject" && p.name != want {
				t.Errorf("check looks at the policy %s, not %s", p.name, want)
			}
		}
	}
}

// What refuses pods without an id after the chart is removed may be missing before, and nothing else shows it.
func TestTheChartHasAPolicyThatOutlivesIt(t *testing.T) {
	object := func(kind, spec string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "idalloc-gate"}, "spec": map[string]any{"policyName": spec, "validationActions": []any{"Deny"}}}}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		return o
	}
	const policyKind, bindingKind = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    State
		says    string
	}{
		"of the chart":            {[]runtime.Object{object(policyKind, ""), object(bindingKind, "idalloc-gate")}, Installed, ""},
		"bound to another policy": {[]runtime.Object{object(policyKind, ""), object(bindingKind, "other")}, Broken, "validatingadmissionpolicybindings/idalloc-gate is for policy other"},
		"not bound":               {[]runtime.Object{object(policyKind, "")}, Missing, "no validatingadmissionpolicybindings/idalloc-gate: install the chart"},
		"deleted, or of config":   {nil, Absent, "the chart alone has it: without it, pods that ask for an id start without one"},
	} {
		c, seen := checker{Options{Namespace: "shop", Dynamic: fake.NewSimpleDynamicClient(runtime.NewScheme(), tc.objects...)}}, false
		for _, p := range policies(found{name: controllerName}) {
			if p.name != "idalloc-gate" {
				continue
			}
			seen = true
			row, err := c.policy(t.Context(), p, trial{})
			if err != nil || row.State != tc.want || !strings.HasPrefix(row.Detail, tc.says) {
				t.Errorf("%s: %+v, %v", name, row, err)
			}
		}
		if !seen {
			t.Errorf("%s: check has no row about it", name)
		}
	}
}
