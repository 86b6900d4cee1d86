package reconciler

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

type queue = workqueue.TypedRateLimitingInterface[kinds.Ref]

// named returns the owner that a receipt names.
func (x *Reconciler) named(owner, namespace string) (ref kinds.Ref, known bool) {
	ref, known = x.kinds.Parse(owner, namespace)
	return ref, known && ref.String() == owner
}

// ownerOfPod returns the owner of a pod by what the cache knows. It returns the ReplicaSet if that is not in the cache, and the pod itself if no owner is
// known. Reconcile then finds out more.
func (x *Reconciler) ownerOfPod(ctx context.Context, pod metav1.Object) (ref kinds.Ref) {
	known := false
	if c := metav1.GetControllerOfNoCopy(pod); c != nil {
		ref, known = x.controls(ctx, c, pod.GetNamespace())
	} else if r, err := receipt.Parse(pod.GetAnnotations()[receipt.Key]); err != nil || r.State == receipt.Locks {
		ref, known = x.locksFor(pod) // it was relabelled
	}
	if !known {
		return kinds.Ref{APIVersion: "v1", Kind: podKind, Namespace: pod.GetNamespace(), Name: pod.GetName()}
	}
	return ref
}

// controls returns the owner of a pod with this controller. A Deployment never controls pods directly, but anyone may write a reference that claims so.
func (x *Reconciler) controls(ctx context.Context, c *metav1.OwnerReference, namespace string) (ref kinds.Ref, known bool) {
	ref, known = x.kinds.Ref(c.APIVersion, c.Kind, namespace, c.Name)
	if ref.Is(kinds.ReplicaSet) {
		if set, err := x.ownerMeta(ctx, ref); err == nil && set.UID == c.UID {
			return x.kinds.Above(ref, metav1.GetControllerOfNoCopy(set))
		}
	}
	return ref, known && !ref.Rolls()
}

// locksFor returns the owner that the pod's receipt is for. If the receipt cannot be read, the pod's label still identifies the owner among those that this
// process has reconciled.
func (x *Reconciler) locksFor(pod metav1.Object) (ref kinds.Ref, known bool) {
	refs := x.heldUp(pod)
	if _, err := receipt.Parse(pod.GetAnnotations()[receipt.Key]); len(refs) != 1 || err != nil && pod.GetLabels()[receipt.OwnerLabel] == "" {
		return kinds.Ref{}, false
	}
	return refs[0], true
}

// heldUp returns the owners whose slots and partitions the pod's receipt may lock. Without a label, an unreadable receipt may lock those of any owner.
func (x *Reconciler) heldUp(pod metav1.Object) (refs []kinds.Ref) {
	if r, err := receipt.Parse(pod.GetAnnotations()[receipt.Key]); err == nil {
		if ref, known := x.named(r.Owner, pod.GetNamespace()); known {
			refs = append(refs, ref)
		}
		return refs
	}
	label := pod.GetLabels()[receipt.OwnerLabel]
	x.mu.Lock()
	defer x.mu.Unlock()
	for ref := range x.memories {
		if ref.Namespace == pod.GetNamespace() && (label == "" || assignment.OwnerLabelValue(ref.String()) == label) {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b kinds.Ref) int { return strings.Compare(a.String(), b.String()) })
	return refs
}

// podEvents returns a handler that queues the owner of each pod that changes.
func (x *Reconciler) podEvents() handler.TypedFuncs[*corev1.Pod, kinds.Ref] {
	add := func(ctx context.Context, q queue, pod *corev1.Pod) { q.Add(x.hear(x.ownerOfPod(ctx, pod))) }
	return handler.TypedFuncs[*corev1.Pod, kinds.Ref]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) { add(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) {
			add(ctx, q, e.Object)
			// This frees a slot of these owners, even if the pod has other controllers now or its receipt was removed.
			for _, ref := range x.heldUp(e.Object) {
				q.Add(ref)
			}
			if ref, known := x.named(former(e.Object.Annotations[receipt.IdentityKey]), e.Object.Namespace); known {
				q.Add(ref)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			was := *e.ObjectOld
			switch was.ResourceVersion = e.ObjectNew.ResourceVersion; {
			case equality.Semantic.DeepEqual(&was, e.ObjectNew):
			case e.ObjectOld.Annotations[receipt.ProposalKey] != e.ObjectNew.Annotations[receipt.ProposalKey]: // the controller wrote that itself
				q.Add(x.ownerOfPod(ctx, e.ObjectNew))
			default:
				add(ctx, q, e.ObjectNew)
			}
			// If the pod was told of another owner, it no longer runs under an id of the earlier one.
			from, to := former(e.ObjectOld.Annotations[receipt.IdentityKey]), former(e.ObjectNew.Annotations[receipt.IdentityKey])
			if ref, known := x.named(from, e.ObjectNew.Namespace); known && from != to {
				q.Add(ref)
			}
		},
	}
}

// sets queues the Deployment of each ReplicaSet that changes owners or gets its revision number.
func (x *Reconciler) sets(_ context.Context, set *metav1.PartialObjectMetadata) []kinds.Ref {
	ref, _ := kinds.NewRef("apps/v1", kinds.ReplicaSet, set.Namespace, set.Name)
	if top, known := x.kinds.Above(ref, metav1.GetControllerOfNoCopy(set)); known {
		return []kinds.Ref{top}
	}
	return nil
}

// owners returns a function that queues owners with pods of the controller when their spec or annotations change.
func (x *Reconciler) owners(gvk schema.GroupVersionKind) handler.TypedMapFunc[*metav1.PartialObjectMetadata, kinds.Ref] {
	return func(ctx context.Context, o *metav1.PartialObjectMetadata) []kinds.Ref {
		ref, known := x.kinds.Ref(gvk.GroupVersion().String(), gvk.Kind, o.Namespace, o.Name)
		if known && x.used(ctx, ref, o) {
			return []kinds.Ref{x.hear(ref)}
		}
		return nil
	}
}

// used reports whether the owner has pods of the controller, still has a revision for such pods, or has released some that lock its slots.
func (x *Reconciler) used(ctx context.Context, ref kinds.Ref, o metav1.Object) bool {
	has := func(list client.ObjectList, value string) bool {
		err := x.listCached(ctx, list, ref.Namespace, value, client.Limit(1))
		return err != nil || meta.LenList(list) > 0
	}
	return has(&corev1.PodList{}, string(o.GetUID())) || has(&corev1.PodList{}, lockValue(ref.String())) || has(metaList(replicaSets), string(o.GetUID()))
}

// changes reports whether an update changes more than the resourceVersion.
func changes(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
	was := *e.ObjectOld
	was.ResourceVersion = e.ObjectNew.ResourceVersion
	return !equality.Semantic.DeepEqual(&was, e.ObjectNew)
}
