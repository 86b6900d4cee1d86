// Package census finds out, for a plan, which pods of an owner live and what each of them locks. It writes nothing. Other programs may use it, but its API
// may change with any version.
package census

import (
	"context"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Survey lists the owner's live pods and the other live pods that lock one of its slots, sorted by name. It writes nothing. Read the owner before you call
// Survey, never after. It blocks for two lists, plus a read of the ReplicaSet of each pod that may come from another owner, and of each ReplicaSet that may
// belong to another Deployment. Errors: *request.ForbiddenError, or another error that request.Temporary judges.
func Survey(ctx context.Context, s *store.Store, owner store.Owner) ([]proposal.Pod, error) {
	seen, metas := map[string]proposal.Pod{}, map[string]*metav1.PartialObjectMetadata{}
	for _, selector := range Selectors(owner) {
		o := metav1.ListOptions{LabelSelector: selector, FieldSelector: store.LivePods}
		err := s.EachPod(ctx, owner.Namespace, o, func(meta *metav1.PartialObjectMetadata) {
			if seen[meta.Name].UID == string(meta.UID) {
				return
			}
			pod, _ := PodOf(owner, meta, selector == owner.Selector) // an unreadable receipt locks
			seen[meta.Name] = pod
			delete(metas, meta.Name)
			if pod.Former.State == receipt.Locks || pod.Owned && pod.Receipt.Locked() && suspect(owner, meta) {
				metas[meta.Name] = meta.DeepCopy()
			}
		})
		if err != nil {
			return nil, err
		}
	}
	pods, anothers := make([]proposal.Pod, 0, len(seen)), map[string]bool{} // anothers is by controller
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		pod := seen[name]
		switch meta := metas[pod.Name]; {
		case meta == nil:
		case pod.Former.State == receipt.Locks:
			switch moves, err := moves(ctx, s, owner, meta); {
			case err != nil:
				return nil, err
			case moves:
				pod = pod.Moved()
			}
		default:
			is, known := anothers[pod.Controller]
			if !known {
				is = another(ctx, s, owner, meta)
				anothers[pod.Controller] = is
			}
			pod.Foreign = is
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// moves reports whether a pod that locks a slot of another owner now belongs to this one.
func moves(ctx context.Context, s *store.Store, owner store.Owner, pod *metav1.PartialObjectMetadata) (bool, error) {
	switch controller := metav1.GetControllerOfNoCopy(pod); {
	case controller == nil:
		return false, nil
	case controller.UID == owner.UID:
		return !owner.Controlled, nil
	case !owner.Rolls():
		return false, nil
	}
	ref, err := watch.Resolve(ctx, s, pod)
	if errors.Is(err, request.ErrGone) || errors.Is(err, watch.ErrNoController) || errors.Is(err, watch.ErrUnknownOwner) {
		return false, nil
	}
	return err == nil && ref == owner.Ref, err
}

// suspect reports whether a pod's controller does not belong to the owner by its name. A Deployment names its ReplicaSets after itself plus the hash that
// their pods have as a label, but may also have adopted others. A pod without a controller may be about to be adopted.
func suspect(owner store.Owner, pod *metav1.PartialObjectMetadata) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	switch {
	case controller == nil:
		return false
	case owner.Rolls():
		return !kinds.IsReplicaSet(controller) || controller.Name != owner.Name+"-"+pod.Labels["pod-template-hash"]
	}
	return !owner.Names(controller)
}

// another reports whether a suspect pod belongs to another owner. It returns false if that is unknown, and while the pod's ReplicaSet has no controller,
// because a Deployment may be about to adopt it.
func another(ctx context.Context, s *store.Store, owner store.Owner, pod *metav1.PartialObjectMetadata) bool {
	if !owner.Rolls() || !kinds.IsReplicaSet(metav1.GetControllerOfNoCopy(pod)) {
		return true
	}
	ref, err := watch.Resolve(ctx, s, pod)
	return errors.Is(err, watch.ErrUnknownOwner) || err == nil && ref.Rolls() && ref != owner.Ref
}

// Selectors returns the label selectors for the pods that matter to a plan: the owner's pods, and those with a lock, which may have been relabelled.
func Selectors(owner store.Owner) []string {
	return []string{owner.Selector, assignment.HoldersSelector(owner.String())}
}

// PodOf returns what a plan needs to know about a live pod. owned is true if the owner's selector matches it. The error describes what is wrong with the
// receipt; the returned pod is valid in any case. If it has Former, it may have Moved.
func PodOf(owner store.Owner, meta metav1.Object, owned bool) (proposal.Pod, error) {
	pod := proposal.Pod{
		Name: meta.GetName(), UID: string(meta.GetUID()), Created: meta.GetCreationTimestamp().Time, Owned: owned, Ordinal: proposal.NoOrdinal,
	}
	var err error
	pod.Receipt, err = receipt.Of(meta, owner.String())
	if n, ok := owner.Ordinal(meta); ok {
		pod.Ordinal = n
	}
	pod.Condemned = owned && owner.Condemned(meta)
	if owned && pod.Receipt.State == receipt.None {
		pod.Former = receipt.Elsewhere(meta, owner.String())
	}
	if end := meta.GetDeletionTimestamp(); end != nil {
		pod.Terminating, pod.Deadline = true, end.Time // Kubernetes has added the grace period to this time
	}
	if controller := metav1.GetControllerOfNoCopy(meta); controller != nil {
		pod.Controller = string(controller.UID)
	}
	return pod, err
}

// Finished reports whether a pod in this phase is dead. store.LivePods selects the others.
func Finished(phase string) bool { return phase == "Succeeded" || phase == "Failed" }
