package enable

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// Release returns a plan with the workload whose pod template no longer asks for ids, and what is left to do. The plan has no object if the template asks for
// none. whole is the workload as read from the API server.
func Release(ref kinds.Ref, whole *unstructured.Unstructured) (Plan, error) {
	after := whole.DeepCopy()
	template, found, err := unstructured.NestedFieldNoCopy(after.Object, "spec", "template")
	t, isMap := template.(map[string]any)
	if !found || !isMap {
		return Plan{}, errors.Join(err, fmt.Errorf("%s in namespace %s has no pod template", ref, ref.Namespace))
	}
	if runs(t) {
		return Plan{}, fmt.Errorf("the pod template of %s in namespace %s has container idalloc: take it out of your manifest, with all that came with it", ref, ref.Namespace)
	}
	labels, _, _ := unstructured.NestedStringMap(t, "metadata", "labels")
	account, _, _ := unstructured.NestedString(t, "metadata", "annotations", inject.AccountKey)
	if !inject.Release(t) {
		return Plan{Notes: []string{fmt.Sprintf("the pod template of %s in namespace %s asks for no id: nothing is changed", ref, ref.Namespace)}}, nil
	}
	if ref.Is(kinds.Job) {
		return Plan{}, fmt.Errorf("%s in namespace %s: a Job's pod template cannot be changed: delete the Job, and create it without label %s or %s", ref, ref.Namespace, inject.AssignLabel, inject.Label)
	}
	p := Plan{Objects: []*unstructured.Unstructured{after}, Notes: []string{"take the same out of the manifest that you apply, or the next apply brings it back"}}
	if labels[inject.AssignLabel] == inject.ByController {
		selector, err := selectorOf(after)
		if err != nil {
			return Plan{}, fmt.Errorf("the selector of %s in namespace %s: %w", ref, ref.Namespace, err)
		}
		p.Notes = append(p.Notes, fmt.Sprintf("this deletes no pod. If pods still wait at the gate when the update is done, delete them: "+
			"kubectl delete pods -n %s -l '%s,%s=%s' --field-selector=status.phase=Pending", ref.Namespace, selector, inject.AssignLabel, inject.ByController))
	}
	if labels[inject.Label] == "true" {
		name := accountName(ref)
		own := ""
		if account == name {
			own = ",serviceaccounts"
		}
		p.Notes = append(p.Notes, fmt.Sprintf("when no pod with the sidecar runs any more, delete what kubectl idalloc enable made: "+
			"kubectl delete roles,rolebindings%s -n %s --ignore-not-found %s %[3]s-agent", own, ref.Namespace, name))
	}
	return p, nil
}

// selectorOf returns the workload's selector in kubectl's syntax.
func selectorOf(whole *unstructured.Unstructured) (string, error) {
	raw, _, err := unstructured.NestedMap(whole.Object, "spec", "selector")
	if err != nil {
		return "", err
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		return "", err
	}
	return metav1.FormatLabelSelector(selector), nil
}
