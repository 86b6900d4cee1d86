package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// settled reports whether the owner's status proves that each id has a Ready pod. During a rollout, and while a pod is being deleted, the number of Ready pods
// can be right although one of them has no id.
func settled(owner *unstructured.Unstructured, count int) bool {
	status := func(field string) int {
		n, _, err := unstructured.NestedInt64(owner.Object, "status", field)
		if err != nil {
			return -1 // then only the pods can tell
		}
		return int(n)
	}
	switch owner.GetKind() {
	case kinds.Job:
		return status("active") == count && status("ready") == count && status("terminating") == 0
	case kinds.ReplicaSet:
		return status("replicas") == count && status("readyReplicas") == count && status("terminatingReplicas") == 0
	}
	return status("replicas") == count && status("readyReplicas") == count && status("updatedReplicas") == count && status("terminatingReplicas") == 0
}

// attend explains, by id, why an id's pod cannot work. The row keeps an id as a member for a while after its pod was lost, and as long as its pod exists but
// does not answer. Neither must get load.
func (w Workload) attend(ctx context.Context, m *Moment) error {
	pods := map[string]pod{}
	o := m.Owner
	err := w.Store.EachFullPod(ctx, o.Namespace, metav1.ListOptions{LabelSelector: o.Selector}, func() { clear(pods) }, func(object *unstructured.Unstructured) {
		p := judge(object)
		r, _ := receipt.Of(object, o.String()) // an unreadable receipt shows nothing about partitions
		p.paused = r.State == receipt.Locks && r.Share.Of == 0
		pods[object.GetName()] = p
	})
	if err != nil {
		return err
	}
	for id := range m.Count {
		name, held := o.Record.State.Slots[id]
		p, there := pods[name]
		switch {
		case !held:
			m.Absent[id] = "no pod has it"
		case !there:
			m.Absent[id] = fmt.Sprintf("its pod %s is gone", name)
		case p.unable != "":
			m.Absent[id] = fmt.Sprintf("its pod %s %s", name, p.unable)
		case p.paused:
			m.Absent[id] = fmt.Sprintf("its pod %s is paused, or does not work on partitions", name)
		}
		if there && p.runs {
			m.Unready[id] = true
		}
	}
	return nil
}

// pod holds what matters of a pod here.
type pod struct {
	// unable explains why it cannot work. It is empty if it can.
	unable string
	// runs: it is unable only because the kubelet has found a running container not ready.
	runs bool
	// paused: its receipt has a slot but no set of partitions.
	paused bool
}

func judge(object *unstructured.Unstructured) pod {
	if object.GetDeletionTimestamp() != nil {
		return pod{unable: "is being deleted"}
	}
	var p corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &p); err != nil {
		return pod{unable: "has a status that cannot be read"}
	}
	// When a node is lost, its pods become not Ready, but ContainersReady and the containers stay as they were.
	if condition(&p, corev1.PodReady) == corev1.ConditionTrue {
		return pod{}
	}
	return pod{unable: "is not Ready", runs: condition(&p, corev1.ContainersReady) == corev1.ConditionFalse && running(&p)}
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func running(p *corev1.Pod) bool {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].State.Running == nil {
			return false
		}
	}
	return len(p.Status.ContainerStatuses) > 0
}
