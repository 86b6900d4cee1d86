package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// snapshot is an owner and its pods. The pods were read after the owner.
type snapshot struct {
	owner store.Owner
	// now is when the owner had been read, by this machine's clock.
	now time.Time
	// pods are the owner's pods, the pods with a receipt for it, and its holders, by name.
	pods    map[string]pod
	rollout rollout
	// adopted are the owner's ReplicaSets whose names do not begin with its name. It took them over from another Deployment.
	adopted map[string]bool
}

type pod struct {
	plan.Pod              // the part that a planner sees
	revision, node, phase string
	// ready is the pod's condition Ready.
	ready bool
	// controller is the name of the pod's direct controller, empty if it has none. template is the hash of its Deployment's template.
	controller, template string
	// damage says what is wrong with the receipt, empty if nothing is.
	damage string
	// written is when idalloc wrote the pod's receipt last, zero if the server does not say.
	written time.Time
}

// receipt returns the pod's receipt if it locks a slot, and nil otherwise.
func (p pod) receipt() *assignment.Receipt {
	if !p.Receipt.Locks() {
		return nil
	}
	return p.Receipt
}

// locks returns the partitions that the receipt of a live pod locks.
func (p pod) locks() placement.Set {
	if r := p.receipt(); r != nil && r.Partitions != nil && p.live() {
		return *r.Partitions
	}
	return placement.Set{}
}

// yields returns the partitions that the receipt yields.
func (p pod) yields() placement.Set {
	if r := p.receipt(); r != nil {
		return r.Yields
	}
	return placement.Set{}
}

// works reports whether the pod's receipt locks the slot and says that its process works on partitions.
func (p pod) works(id int) bool {
	r := p.receipt()
	return r != nil && r.ID == id && r.Partitions != nil && p.live()
}

// unaware reports whether the pod's receipt locks the slot and says that its process works on no partitions.
func (p pod) unaware(id int) bool {
	r := p.receipt()
	return r != nil && r.ID == id && r.Partitions == nil && p.live()
}

// gaveUp reports whether the pod has given its slot up and has not taken another one.
func (p pod) gaveUp() bool { return p.Receipt != nil && p.Receipt.GaveUp }

// sign reports whether the pod has a trace of idalloc, which then runs in it or did so.
func (p pod) sign() bool { return p.Receipt != nil || p.damage != "" }

func (p pod) live() bool { return !gc.Finished(p.phase) }

// read reads an owner and its pods. Errors: as of store.Get and gc.Survey.
func read(ctx context.Context, s *store.Store, ref store.Ref) (snapshot, error) {
	owner, err := s.Get(ctx, ref)
	if err != nil {
		return snapshot{}, err
	}
	now := snapshot{owner: owner, now: s.Clock.Now(), pods: map[string]pod{}}
	_, err = gc.Inspect(ctx, s, owner, func(u *unstructured.Unstructured, owned bool) {
		if known, ok := now.pods[u.GetName()]; !ok || known.UID != string(u.GetUID()) {
			now.pods[u.GetName()] = newPod(u, owner, owned, s.Clock.Now())
		}
	})
	if err == nil {
		now.adopted = now.adoptions(ctx, s)
	}
	return now, err
}

// adoptions returns the owner's ReplicaSets among those whose names say that they are another Deployment's. What it may not read, it
// believes by the name.
func (n snapshot) adoptions(ctx context.Context, s *store.Store) map[string]bool {
	adopted := map[string]bool{}
	for _, p := range n.pods {
		if _, known := adopted[p.controller]; known || !n.owner.Rolls() || !p.Owned || !n.another(p) {
			continue
		}
		rs, err := s.GetMetadata(ctx, store.Ref{APIVersion: "apps/v1", Kind: store.ReplicaSet, Namespace: n.owner.Namespace, Name: p.controller})
		adopted[p.controller] = err == nil && metav1.IsControlledBy(rs, &metav1.ObjectMeta{UID: n.owner.UID})
	}
	return adopted
}

func newPod(u *unstructured.Unstructured, owner store.Owner, owned bool, now time.Time) pod {
	var p pod
	var err error
	if p.Pod, err = gc.PodOf(owner, u, owned, now); err != nil {
		p.damage = err.Error()
	}
	p.node, _, _ = unstructured.NestedString(u.Object, "spec", "nodeName")
	p.phase, _, _ = unstructured.NestedString(u.Object, "status", "phase")
	p.ready = condition(u, "Ready")["status"] == "True"
	p.written = store.LastWrite(u.GetManagedFields())
	labels := u.GetLabels()
	p.template = labels["pod-template-hash"]
	p.revision = cmp.Or(p.template, labels["controller-revision-hash"])
	if c := metav1.GetControllerOfNoCopy(u); c != nil {
		p.controller = c.Name
	}
	return p
}

// names returns the names of the pods in order.
func (n snapshot) names() []string { return slices.Sorted(maps.Keys(n.pods)) }

// holds reports whether the assignment gives slot id to this live pod.
func (n snapshot) holds(id int) bool {
	p, exists := n.pods[n.owner.Record.State.Slots[id]]
	return exists && n.death(id, p, exists) == ""
}

// death returns why the holder of slot id is dead. It returns an empty text if the holder lives. p is the pod with the holder's
// name, if one exists.
func (n snapshot) death(id int, p pod, exists bool) string {
	switch {
	case !exists:
		return "gone"
	case !p.live():
		return p.phase
	case !n.owner.Names(id, p.Name, types.UID(p.UID)):
		return fmt.Sprintf("an earlier pod (UID %s…) of the one that has its name now", n.owner.Record.State.UIDs[id])
	}
	return ""
}

// overdue reports whether the pod has outlived its grace period for so long that its node may be down, as far as clocks tell.
func (n snapshot) overdue(p pod) bool {
	return p.live() && p.Terminating && !n.now.Before(p.Deadline.Add(plan.LostAfter))
}

// left reports whether the receipt was left behind by a lost pod, which has no entry in a clean map any more. It locks nothing.
func (n snapshot) left(p pod) bool {
	_, named := n.owner.SlotOf(p.Name, types.UID(p.UID))
	return n.owner.Clean() && !named && n.overdue(p) && p.MayBeLost()
}

// locks reports whether the pod lives and its receipt locks a slot.
func (n snapshot) locks(p pod) bool { return p.receipt() != nil && p.live() && !n.left(p) }

// another reports whether the pod belongs to another workload, whose pods have the labels that this owner selects, too. The name of a
// Deployment's ReplicaSet is the Deployment's with the hash behind that its pods have as a label.
func (n snapshot) another(p pod) bool {
	if p.controller == "" {
		return false
	}
	if !n.owner.Rolls() {
		return p.controller != n.owner.Name
	}
	return !n.adopted[p.controller] && p.template != "" && strings.HasSuffix(p.controller, "-"+p.template) && p.controller != n.owner.Name+"-"+p.template
}

// waiters returns the owner's live pods without a slot, oldest first.
func (n snapshot) waiters() []pod {
	var waiters []pod
	for name, p := range n.pods {
		if !p.live() || p.Terminating || !p.Owned || n.another(p) || p.receipt() != nil {
			continue
		}
		if id, named := n.owner.Record.State.Slots.Of(name); !named || n.death(id, p, true) != "" {
			waiters = append(waiters, p)
		}
	}
	slices.SortFunc(waiters, func(a, b pod) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return waiters
}
