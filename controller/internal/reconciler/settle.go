package reconciler

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/watch"
)

// settle reports whether ref is an owner. If ref is a ReplicaSet or a pod below one, settle queues that owner.
func (x *Reconciler) settle(ctx context.Context, ref kinds.Ref) (known bool, err error) {
	top := ref
	switch {
	case ref.Kind == podKind && ref.APIVersion == "v1":
		top, err = x.settlePod(ctx, ref)
	case ref.Is(kinds.ReplicaSet):
		top, err = x.settleSet(ctx, ref)
	}
	switch {
	case errors.Is(err, request.ErrGone):
		return false, nil
	case err != nil || top == (kinds.Ref{}):
		return false, err
	case top == ref:
		return true, nil
	}
	select {
	case x.others <- event.TypedGenericEvent[kinds.Ref]{Object: top}:
	case <-ctx.Done():
	}
	return false, nil
}

func (x *Reconciler) settleSet(ctx context.Context, ref kinds.Ref) (kinds.Ref, error) {
	set, err := x.ownerMeta(ctx, ref)
	if err != nil {
		if set, err = x.store.GetMetadata(ctx, ref); err != nil {
			return kinds.Ref{}, err
		}
	}
	top, _ := x.kinds.Above(ref, metav1.GetControllerOfNoCopy(set))
	return top, nil // if there is none, each of its pods is reported by settlePod
}

// settlePod finds the owner of a pod if the cache does not show it. If there is none, it writes an Event.
func (x *Reconciler) settlePod(ctx context.Context, ref kinds.Ref) (kinds.Ref, error) {
	pod, err := x.store.GetPod(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return kinds.Ref{}, err
	}
	if top := x.ownerOfPod(ctx, pod); top.Kind != podKind {
		return top, nil
	}
	top, err := watch.Resolve(ctx, x.store, pod)
	if c := metav1.GetControllerOfNoCopy(pod); err == nil && c != nil && top.Rolls() && top.Names(c) {
		err = fmt.Errorf("%w: the pod names %s as its controller, but a Deployment controls ReplicaSets, not pods", watch.ErrUnknownOwner, top)
	}
	if !errors.Is(err, watch.ErrUnknownOwner) && !errors.Is(err, watch.ErrNoController) {
		return top, err
	}
	if x.seldom(string(pod.UID), "OwnerUnknown") {
		// Log: the pod has no owner that idalloc can count, so it waits behind its gate for ever; an Event says the same.
		// Do: run it from an [owner](words.md), or name its kind with --kind.
		x.log.Info("a pod gets no id", "pod", ref.Name, "namespace", ref.Namespace, "detail", err.Error())
		// Event: on a pod: it has no owner that idalloc can count, so it waits behind its gate for ever.
		// Do: run it from an [owner](words.md), or name its kind with --kind.
		x.event(ctx, aboutPod(pod), ref.Namespace, kubeevent.Warning, "OwnerUnknown",
			fmt.Sprintf("the pod gets no id: %v; --kind of idalloc-controller names further kinds", err))
	}
	return kinds.Ref{}, nil
}
