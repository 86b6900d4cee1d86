package watch

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/internal/sanitise"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

var (
	// ErrNoController means that the pod belongs to no workload.
	// Error: exit code 1: the pod was not made by a workload.
	// Do: run the pod from an [owner](words.md).
	ErrNoController = errors.New("the pod has no controller")
	// ErrUnknownOwner means that the kind of the pod's workload cannot carry an assignment.
	// Error: exit code 1: the pods belong to a kind that idalloc cannot count, or their ReplicaSets do (a custom rollout controller).
	// Do: run them from an [owner](words.md).
	ErrUnknownOwner = errors.New("unknown owner kind")
)

// Resolve returns the owner of a pod: the topmost object above it with a replica count. That is a Deployment, a StatefulSet, a ReplicaSet without a
// Deployment, or a Job. Resolve follows the controller in metadata.ownerReferences.
//
// It sends at most one request: it reads a ReplicaSet to see whether a Deployment is above it. If it cannot read the ReplicaSet, it returns an error. A pod
// without a controller belongs to the owner in its receipt: the pod was relabelled, or its workload was deleted without its pods. Errors: ErrNoController,
// ErrUnknownOwner, request.ErrGone, *request.ForbiddenError, or another error that request.Temporary judges.
//
// further are additional owner kinds.
func Resolve(ctx context.Context, s *store.Store, pod *metav1.PartialObjectMetadata, further ...kinds.Kind) (kinds.Ref, error) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		if ref, ok := byReceipt(pod, further); ok {
			return ref, nil
		}
		return kinds.Ref{}, fmt.Errorf("%w: pod %s in namespace %s stands alone: run it from a "+kinds.Any+
			"; if a virtual cluster copied it here, install idalloc in that cluster, and exclude this namespace from the policies here",
			ErrNoController, pod.Name, pod.Namespace)
	}
	ref, ok := kinds.NewRef(controller.APIVersion, controller.Kind, pod.Namespace, controller.Name, further...)
	if !ok {
		return kinds.Ref{}, unknown(pod, "pod "+pod.Name, controller)
	}
	if !ref.Is(kinds.ReplicaSet) {
		return ref, nil // each Job of a CronJob has its own ids, and idalloc does not know the operators above other kinds
	}
	rs, err := s.GetMetadata(ctx, ref)
	if err != nil {
		return kinds.Ref{}, fmt.Errorf("cannot tell what owns pod %s in namespace %s: %w", pod.Name, pod.Namespace, err)
	}
	above := metav1.GetControllerOfNoCopy(rs)
	top, ok := kinds.BuiltIn(further...).Above(ref, above)
	if !ok {
		return kinds.Ref{}, unknown(pod, ref.String(), above)
	}
	return top, nil
}

// byReceipt finds the owner of a pod without a controller. The pod may still hold its slot. Otherwise it waits until it is adopted, because a process that
// ended would be restarted again and again.
func byReceipt(pod *metav1.PartialObjectMetadata, further []kinds.Kind) (kinds.Ref, bool) {
	r, err := receipt.Parse(pod.Annotations[receipt.Key])
	if err != nil || r.UID != string(pod.UID) {
		return kinds.Ref{}, false
	}
	return kinds.BuiltIn(further...).Parse(r.Owner, pod.Namespace)
}

func unknown(pod *metav1.PartialObjectMetadata, of string, controller *metav1.OwnerReference) error {
	return fmt.Errorf("%w: %s in namespace %s is controlled by %s %s/%s, for which idalloc cannot count it: run the pods from a "+kinds.Any,
		ErrUnknownOwner, of, pod.Namespace, sanitise.Quoted(controller.APIVersion), sanitise.Quoted(controller.Kind), sanitise.Quoted(controller.Name))
}
