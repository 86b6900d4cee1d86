package inspect

import (
	"cmp"
	"context"
	"errors"
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
	pods    map[string]pod
	leases  leases
	rollout rollout
	// accounts are the pods' service accounts and when they were made, zero if that may not be read.
	accounts map[string]time.Time
	// copied is a pod that the map names, and that lives and is not the owner's: the map is that of another workload. It is empty if there is none.
	copied string
	// adopted says of ReplicaSets with strange names whether they are the owner's. A Deployment may take one over from another one.
	adopted map[string]bool
	// evict is what the owner's annotation of this name says.
	evict string
}

type pod struct {
	proposal.Pod // the part that a planner sees
	assigned
	revision, node, phase string
	// account is the pod's service account.
	account string
	// runs says that the pod's object shows that idalloc runs in it.
	runs bool
	// ready is the pod's condition Ready. graceless says that each deletion of the pod is a force delete.
	ready, graceless bool
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
	return p.Receipt.State != receipt.None || p.elsewhere.State != receipt.None || p.byController
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
		pods: map[string]pod{}, rollout: rollout{finished: finished(whole)}, evict: whole.GetAnnotations()[evictKey],
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
	if now.copied, err = now.copies(ctx, s); err != nil {
		return snapshot{}, err
	}
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

// adoptions returns the ReplicaSets of which the names do not say that they are the owner's, and whether they are. What it may not read, it leaves
// out.
func (n snapshot) adoptions(ctx context.Context, s *store.Store) map[string]bool {
	adopted := map[string]bool{}
	for _, p := range n.pods {
		if _, known := adopted[p.controller]; known || !n.owner.Rolls() || !p.Owned || p.controller == "" || p.controller == n.owner.Name+"-"+p.template {
			continue
		}
		rs, err := s.GetMetadata(ctx, store.Ref{APIVersion: "apps/v1", Kind: store.ReplicaSet, Namespace: n.owner.Namespace, Name: p.controller})
		if err == nil {
			adopted[p.controller] = metav1.IsControlledBy(rs, &metav1.ObjectMeta{UID: n.owner.UID})
		}
	}
	return adopted
}

// copies returns the first pod that the map names and that is not among the owner's, if it lives. One request tells whether that map is another
// workload's.
func (n snapshot) copies(ctx context.Context, s *store.Store) (string, error) {
	slots := n.owner.Record.State.Slots
	for _, id := range slots.IDs() {
		if _, known := n.pods[slots[id]]; known {
			continue
		}
		pod, err := s.GetFullPod(ctx, n.owner.Namespace, slots[id])
		switch {
		case errors.Is(err, store.ErrGone):
			return "", nil
		case err != nil:
			return "", err
		case newPod(pod, n.owner, false).live():
			return slots[id], nil
		}
		return "", nil
	}
	return "", nil
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
	p.graceless = store.Graceless(u)
	p.runs, p.assigned = runsIdalloc(u), assignedOf(u)
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

// gone is the death of a pod that is not there.
const gone = "gone"

// death returns why the pod of this name is dead, empty if it lives.
func (n snapshot) death(name string) string {
	p, exists := n.pods[name]
	switch {
	case !exists:
		return gone
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
	if is, known := n.adopted[p.controller]; known {
		return !is
	}
	return p.template != "" && strings.HasSuffix(p.controller, "-"+p.template) && p.controller != n.owner.Name+"-"+p.template
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
