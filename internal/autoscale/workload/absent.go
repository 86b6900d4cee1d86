package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// ready returns how many pods are Ready, as the owner's status says.
func ready(owner *unstructured.Unstructured) int {
	field := "readyReplicas"
	if owner.GetKind() == store.Job {
		field = "ready"
	}
	n, _, err := unstructured.NestedInt64(owner.Object, "status", field)
	if err != nil {
		return 0 // then the pods say it
	}
	return int(n)
}

// absent says of ids whose pod cannot work why that is so. The row has an id as a member for a while after its pod was lost, and of a pod
// that does not answer for as long as it exists. Load must not be given to either.
func (w Workload) absent(ctx context.Context, o store.Owner) (map[int]string, error) {
	pods := map[string]string{} // why a pod cannot work, empty if it can
	err := w.Store.EachFullPod(ctx, o.Namespace, metav1.ListOptions{LabelSelector: o.Selector}, func(pod *unstructured.Unstructured) {
		pods[pod.GetName()] = unable(pod)
	})
	if err != nil {
		return nil, err
	}
	absent := map[int]string{}
	for id := range o.Count {
		pod, held := o.Record.State.Slots[id]
		why, there := pods[pod]
		switch {
		case !held:
			absent[id] = "no pod has it"
		case !there:
			absent[id] = fmt.Sprintf("its pod %s is gone", pod)
		case why != "":
			absent[id] = fmt.Sprintf("its pod %s %s", pod, why)
		}
	}
	return absent, nil
}

// unable says why a pod cannot work, empty if it can.
func unable(pod *unstructured.Unstructured) string {
	if pod.GetDeletionTimestamp() != nil {
		return "is being deleted"
	}
	conditions, _, err := unstructured.NestedSlice(pod.Object, "status", "conditions")
	if err != nil {
		return "has a status that cannot be read"
	}
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["type"] != string(corev1.PodReady) {
			continue
		}
		if condition["status"] == string(corev1.ConditionTrue) {
			return ""
		}
	}
	return "is not Ready"
}
