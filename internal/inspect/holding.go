package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// lostAfter is how long a pod must outlive its grace period before it is reported as lost, because its node may be down.
const lostAfter = 10 * time.Second

// holding contains who has which slot, and who waits for one.
type holding struct {
	snapshot
	// names are the names of the pods, sorted.
	names []string
	// lockers are the live pods whose receipts lock a slot, by slot, oldest receipt first.
	lockers map[int][]pod
	// waiters are the owner's live pods without a slot, oldest first.
	waiters []pod
	// signs are the revisions that have a pod with a trace of idalloc.
	signs map[string]bool
}

func holdingOf(n snapshot) *holding {
	h := &holding{snapshot: n, names: slices.Sorted(maps.Keys(n.pods)), lockers: map[int][]pod{}, signs: map[string]bool{}}
	for name, p := range n.pods {
		if id := p.Receipt.Slot(); id >= 0 && p.live() && !h.left(p) {
			h.lockers[id] = append(h.lockers[id], p)
		}
		_, entry := n.owner.Record.State.Slots.Of(name)
		if entry || p.sign() {
			h.signs[p.revision] = true
		}
		if p.live() && !p.Terminating && p.Owned && !h.another(p) && !p.Receipt.Locked() && (!entry || p.Receipt.State == receipt.GaveUp) {
			h.waiters = append(h.waiters, p)
		}
	}
	older := func(a, b pod) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) }
	for _, lockers := range h.lockers {
		slices.SortFunc(lockers, func(a, b pod) int { return cmp.Or(a.written.Compare(b.written), older(a, b)) })
	}
	slices.SortFunc(h.waiters, older)
	return h
}

// mostListed is the number of slots that have a row even if they are free. It is limited because a count may be two billion. No map has that many entries.
const mostListed = 1 << 15

// holder returns the live pod that locks the slot or, if none does, the one that should have it. If several lock it, holder returns the one in the map, or the
// first. The name is "" if there is none.
func (h *holding) holder(id int) (name string, locks bool) {
	named := h.owner.Record.State.Slots[id]
	lockers := h.lockers[id]
	switch {
	case slices.ContainsFunc(lockers, func(p pod) bool { return p.Name == named }):
		return named, true
	case len(lockers) > 0:
		return lockers[0].Name, true
	case h.proposed(id):
		return named, false
	}
	return "", false
}

// is reports whether the pod is the holder of the slot and locks it.
func (h *holding) is(p pod, id int) bool {
	name, locks := h.holder(id)
	return locks && name == p.Name
}

// proposed reports whether the map gives the slot to a live pod that may take it.
func (h *holding) proposed(id int) bool {
	name, named := h.owner.Record.State.Slots[id]
	return named && h.death(name) == "" && h.pods[name].Receipt.State != receipt.GaveUp
}

// gone is the death of a pod that does not exist.
const gone = "gone"

// death returns why the pod of this name is dead, or "" if it lives.
func (h *holding) death(name string) string {
	p, exists := h.pods[name]
	switch {
	case !exists:
		return gone
	case !p.live():
		return p.phase
	}
	return ""
}

// overdue reports whether the pod has outlived its grace period for so long that its node may be down. Clocks may differ.
func (h *holding) overdue(p pod) bool {
	return p.live() && p.Terminating && !h.now.Before(p.Deadline.Add(lostAfter))
}

// left reports whether the receipt is from a lost pod that is no longer in the map. Then only its Lease locks the slot, until it expires. Pods ignore such a
// receipt when the grace period has ended.
func (h *holding) left(p pod) bool {
	_, named := h.owner.Record.State.Slots.Of(p.Name)
	return !named && p.Receipt.Strict && p.live() && p.Terminating && !h.now.Before(p.Deadline)
}

// another reports whether the pod belongs to another workload whose pods also match this owner's selector. The ReplicaSet of a Deployment is named after it,
// with the hash that its pods have as a label.
func (h *holding) another(p pod) bool {
	if p.controller == "" {
		return false
	}
	if is, known := h.adopted[p.controller]; known {
		return !is
	}
	if !h.owner.Rolls() {
		return p.controller != h.owner.Name || p.namesake
	}
	return p.template != "" && strings.HasSuffix(p.controller, "-"+p.template) && p.controller != h.owner.Name+"-"+p.template
}

// lease returns the Lease of a slot, or nil if no pod has it.
func (h *holding) lease(id int) *LeaseRow {
	l, held := h.leases.held[id]
	if !held {
		return nil
	}
	return &LeaseRow{Pod: l.Pod, Gone: !h.lives(l), Renewed: metav1.NewTime(l.Renewed), Ends: metav1.NewTime(ends(l))}
}

// lives reports whether the pod that has the Lease is alive.
func (h *holding) lives(l slotlease.Lease) bool {
	p, exists := h.pods[l.Pod]
	return exists && p.live() && p.UID == l.Holder
}

// strict reports whether a live pod's receipt is in strict mode.
func (h *holding) strict() bool {
	return len(h.those(func(p pod) bool { return p.live() && p.Receipt.Strict })) > 0
}

// bars explains that another pod's unexpired Lease blocks the slot, or returns "".
func (h *holding) bars(id int, name string) string {
	l, held := h.leases.held[id]
	if !held || l.Pod == name && h.lives(l) || !ends(l).After(h.now) {
		return ""
	}
	state := h.death(l.Pod)
	switch {
	case state == "" && !h.lives(l):
		state = "an earlier pod of that name"
	case state == "":
		state = "alive"
	}
	return fmt.Sprintf("the Lease of id %d is that of pod %s (%s) and counts until %s, by its renewTime", id, l.Pod, state, ends(l).UTC().Format(time.RFC3339))
}

// stranger reports whether the pod does not belong to the owner.
func (h *holding) stranger(p pod) bool { return !p.Owned || h.another(p) }

// strays reports whether a pod of the owner has a receipt for another owner. A pod without a controller does not count, because it may belong to any workload.
func (h *holding) strays(p pod) bool {
	return p.elsewhere.State != receipt.None && p.controller != "" && !h.stranger(p)
}

// claims reports whether a waiter should take a free slot. A pod that gave up its slot and waits again also counts: it must leave free slots to other pods, but
// then one of these should take the slot.
func (h *holding) claims(p pod) bool {
	switch {
	case p.Receipt.State == receipt.GaveUp: // it takes no slot until its receipt has the state Waits again
	case p.elsewhere.State != receipt.None: // it still belongs to another owner
	case p.controller == "": // the pod belongs to no owner, or its owner has released it
	case p.byController && (!p.gated || len(p.gates) > 0): // nothing can give it a slot now
	case h.rollout.outdated[p.revision]: // the revision is from before idalloc was added
	default:
		return true
	}
	return false
}

// free reports whether no pod has the slot. A dead pod's slot is not free: it is a finding of its own. A slot with an unexpired Lease is not free for a strict
// pod.
func (h *holding) free(id int) bool {
	_, taken := h.owner.Record.State.Slots[id]
	return !taken && len(h.lockers[id]) == 0 && h.bars(id, "") == ""
}

// settled returns how long the owner has not changed, except by status writes. It is 0 if the server does not tell.
func (h *holding) settled() time.Duration {
	if h.changed.IsZero() {
		return 0
	}
	return max(0, h.now.Sub(h.changed))
}

// leaseCounts reports whether a dead pod has an unexpired Lease, which may lock partitions.
func (h *holding) leaseCounts() bool {
	for _, l := range h.leases.held {
		if !h.lives(l) && ends(l).After(h.now) {
			return true
		}
	}
	return false
}

// wiped reports whether the owner has no map although pods hold ids.
func (h *holding) wiped() bool {
	return len(h.lockers) > 0 && len(h.owner.Record.State.Slots) == 0 && !h.broken(assignment.Key)
}

// broken reports whether an annotation of the owner cannot be read.
func (h *holding) broken(key string) bool { return tells(h.owner.Record.Problems, key) }

// unchanged returns how long idalloc has not written the owner. known is false if the server does not tell.
func (h *holding) unchanged() (since time.Duration, known bool) {
	return max(0, h.now.Sub(h.written)), !h.written.IsZero()
}

// gives reports whether the controller removes the pod if a newer one waits for its id.
func (h *holding) gives(p pod) bool { return p.byController && h.owner.Rolls() && !h.keepsAll() }

// keepsAll reports whether an annotation of the owner turns the controller's removals off.
func (h *holding) keepsAll() bool {
	limit, _ := assignment.EvictLimit(h.owner.Annotations, h.owner.Count)
	return limit == 0
}

// those returns the names of the pods for which is returns true, sorted.
func (h *holding) those(is func(p pod) bool) (names []string) {
	for _, name := range h.names {
		if is(h.pods[name]) {
			names = append(names, name)
		}
	}
	return names
}

// tells reports whether one of the problems is about the key.
func tells(problems []assignment.ProblemError, key string) bool {
	return slices.ContainsFunc(problems, func(p assignment.ProblemError) bool { return p.Key == key })
}
