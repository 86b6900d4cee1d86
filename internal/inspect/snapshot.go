package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// lostAfter is how long a pod outlives its grace period until people are told that its node may be down.
const lostAfter = 10 * time.Second

// snapshot is an owner and its pods. The pods were read after the owner.
type snapshot struct {
	owner store.Owner
	// now is when the owner had been read, by this machine's clock.
	now time.Time
	// written is when idalloc wrote the owner last, zero if the server does not say.
	written time.Time
	// changed is when anybody wrote the owner last, but for its status, zero if the server does not say.
	changed time.Time
	// pods are the owner's pods, and the pods with a lock of one of its slots, by name.
	pods   map[string]pod
	leases leases
	// accounts are the pods' service accounts and when they were made, zero if that may not be read.
	accounts map[string]time.Time
	rollout  rollout
	// adopted are the owner's ReplicaSets whose names do not begin with its name. It took them over from another Deployment.
	adopted map[string]bool
}

type pod struct {
	proposal.Pod          // the part that a planner sees
	revision, node, phase string
	// account is the pod's service account.
	account string
	// runs says that the pod's object shows that idalloc runs in it.
	runs bool
	// ready is the pod's condition Ready.
	ready bool
	// controller is the name of the pod's direct controller, empty if it has none. template is the hash of its Deployment's template.
	controller, template string
	// elsewhere is the pod's receipt if it is for another owner.
	elsewhere receipt.Receipt
	// damage says what is wrong with the receipt or its labels, empty if nothing is.
	damage string
	// written is when idalloc wrote the pod's receipt last, zero if the server does not say.
	written time.Time
}

// divides reports whether the pod lives and its receipt says that it works on partitions, be they none at the moment.
func (p pod) divides() bool {
	return p.live() && p.Receipt.State == receipt.Locks && p.Receipt.Share.Of > 0
}

// abstains reports whether the pod lives, and its receipt has a slot and says that it works on no partitions.
func (p pod) abstains() bool {
	return p.live() && p.Receipt.State == receipt.Locks && p.Receipt.Share.Of == 0
}

// gaveUp reports whether the pod has given its slot up and has not taken another one.
func (p pod) gaveUp() bool {
	return !p.Receipt.Locked() && (p.Receipt.State == receipt.GaveUp || p.Receipt.Rank > 0)
}

// sign reports whether the pod has a trace of idalloc, which then runs in it or did so.
func (p pod) sign() bool {
	return p.Receipt.State != receipt.None || p.elsewhere.State != receipt.None
}

func (p pod) live() bool { return !census.Finished(p.phase) }

// read reads an owner, its pods and its Leases. Errors: as of store.Get and store.EachFullPod.
func read(ctx context.Context, s *store.Store, ref store.Ref) (snapshot, error) {
	whole, err := s.GetWhole(ctx, ref)
	if err != nil {
		return snapshot{}, err
	}
	var object store.Object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, &object); err != nil {
		return snapshot{}, err
	}
	owner, err := store.DecodeOwner(ref, &object, nil)
	if err != nil {
		return snapshot{}, err
	}
	now := snapshot{
		owner: owner, now: s.Clock.Now(), written: store.LastWrite(whole.GetManagedFields()), changed: lastChange(whole.GetManagedFields()),
		pods: map[string]pod{}, rollout: rollout{finished: finished(whole)},
	}
	for _, selector := range census.Selectors(owner) {
		err := s.EachFullPod(ctx, owner.Namespace, metav1.ListOptions{LabelSelector: selector}, func(u *unstructured.Unstructured) {
			if known, ok := now.pods[u.GetName()]; !ok || known.UID != string(u.GetUID()) {
				now.pods[u.GetName()] = newPod(u, owner, selector == owner.Selector)
			}
		})
		if err != nil {
			return snapshot{}, err
		}
	}
	now.adopted = now.adoptions(ctx, s)
	now.accounts = now.readAccounts(ctx, s)
	now.leases, err = readLeases(ctx, s, ref)
	return now, err
}

// lastChange returns when somebody wrote an object last, but for its status, zero if the server does not say.
func lastChange(fields []metav1.ManagedFieldsEntry) time.Time {
	var last time.Time
	for i := range fields {
		if f := &fields[i]; f.Subresource != "status" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
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

func newPod(u *unstructured.Unstructured, owner store.Owner, owned bool) pod {
	var p pod
	var err error
	if p.Pod, err = census.PodOf(owner, u, owned); err != nil {
		p.damage = "annotation " + receipt.Key + ": " + err.Error()
	}
	if r, err := receipt.Parse(u.GetAnnotations()[receipt.Key]); err == nil && r.UID == p.UID && r.Owner != owner.String() {
		p.elsewhere = r
	}
	p.node, _, _ = unstructured.NestedString(u.Object, "spec", "nodeName")
	p.account, _, _ = unstructured.NestedString(u.Object, "spec", "serviceAccountName")
	p.phase, _, _ = unstructured.NestedString(u.Object, "status", "phase")
	p.ready = condition(u, "Ready")["status"] == "True"
	p.runs = runsIdalloc(u)
	p.written = store.LastWrite(u.GetManagedFields())
	labels := u.GetLabels()
	if p.damage == "" && p.Receipt.Locked() && (labels[receipt.OwnerLabel] != assignment.OwnerLabelValue(owner.String()) || labels[receipt.IDLabel] != number(p.Receipt.Slot())) {
		p.damage = "labels " + receipt.OwnerLabel + " and " + receipt.IDLabel + " do not say what the receipt locks, so other pods do not see it"
	}
	p.template = labels["pod-template-hash"]
	p.revision = cmp.Or(p.template, labels["controller-revision-hash"])
	if c := metav1.GetControllerOfNoCopy(u); c != nil {
		p.controller = c.Name
	}
	return p
}

// names returns the names of the pods in order.
func (n snapshot) names() []string { return slices.Sorted(maps.Keys(n.pods)) }

// proposed reports whether the map gives slot id to a live pod that may take it.
func (n snapshot) proposed(id int) bool {
	name, named := n.owner.Record.State.Slots[id]
	return named && n.death(name) == "" && n.pods[name].Receipt.State != receipt.GaveUp
}

// death returns why the pod of this name is dead, empty if it lives.
func (n snapshot) death(name string) string {
	p, exists := n.pods[name]
	switch {
	case !exists:
		return "gone"
	case !p.live():
		return p.phase
	}
	return ""
}

// overdue reports whether the pod has outlived its grace period for so long that its node may be down, as far as clocks tell.
func (n snapshot) overdue(p pod) bool {
	return p.live() && p.Terminating && !n.now.Before(p.Deadline.Add(lostAfter))
}

// left reports whether the receipt was left behind by a lost pod, which has no entry in the map any more. Its Lease locks the slot, and
// only as long as it lasts.
func (n snapshot) left(p pod) bool {
	_, named := n.owner.Record.State.Slots.Of(p.Name)
	return !named && p.Receipt.Strict && n.overdue(p)
}

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
		if !p.live() || p.Terminating || !p.Owned || n.another(p) || p.Receipt.Locked() {
			continue
		}
		if _, named := n.owner.Record.State.Slots.Of(name); !named || p.Receipt.State == receipt.GaveUp {
			waiters = append(waiters, p)
		}
	}
	slices.SortFunc(waiters, func(a, b pod) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return waiters
}
