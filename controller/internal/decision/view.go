package decision

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// view is a World with what follows from it.
type view struct {
	w    World
	pods []*pod
	// byPod are the locks that T3 showed. bySlot counts the pods that lock each slot or run under it.
	byPod  map[string]Lock
	bySlot map[int]int
	// named finds pods by name, and running finds the controller's pods by the id under which they run. unlocked are the pods that run under a slot without a
	// receipt that locks it.
	named    map[string]*pod
	running  map[int][]*pod
	unlocked map[int]string
	next     assignment.State
	// ids are the slots of the map, by pod name.
	ids    map[string]int
	offers *proposal.Offers
	// gave are the controllers of pods that gave up a slot and want one. It is nil until it is needed.
	gave  map[string]bool
	found *index
	// space is the owner for which new pods lock.
	space identity.Owner
	// crowded: removals stop until more pods are available. kept: no pod may be removed.
	crowded, kept bool
	// evicts: pods are removed for pods that wait. quietAt is when removals begin if nothing happens before.
	evicts  bool
	quietAt time.Time
	// told are new start counts, by pod name. turnAt is when the count has been stable for long enough, if pods wait for that.
	told   map[string]turn
	turnAt time.Time
	// first is the machine number of id 0, if it is known. numbers is what earliest returns.
	first   int
	numbers map[int]*pod
	// all: T3 must show all locks. covered: the evidence covers all owners that pods come from.
	all, covered bool
	d            Decision
}

// pod is a Pod with the conclusions from its labels and annotations.
type pod struct {
	Pod

	// begun: Begin let the program begin, under the id that it knows. locked: the receipt still locks that id.
	begun  bool
	id     int
	locked bool
	// was is the identity that the pod was told, with receipt.NoID if it is another pod's. token is the token with which the pod began.
	was   identity.Identity
	token int64
	// damaged: the receipt cannot be read. It counts as a lock on what was confirmed.
	damaged bool
}

func newView(w World) *view {
	v := &view{
		w: w, byPod: make(map[string]Lock, len(w.Locks)), bySlot: make(map[int]int, len(w.Locks)), named: make(map[string]*pod, len(w.Pods)), unlocked: map[int]string{},
		running: map[int][]*pod{}, ids: inverse(w.Owner.State.Slots), space: w.Owner.Owner,
	}
	v.covered = !slices.ContainsFunc(w.Former, func(from string) bool { return !slices.Contains(w.Owners, from) })
	var oldest *pod
	for _, p := range w.Pods {
		q := read(p)
		v.pods, v.named[p.Name] = append(v.pods, q), q
		if q.begun {
			v.running[q.id] = append(v.running[q.id], q)
		}
		if q.begun && q.Owned && (oldest == nil || q.before(oldest)) {
			oldest, v.space = q, v.under(q)
		}
	}
	for i, l := range w.Locks {
		if p := v.named[l.Pod]; p != nil && p.damaged && p.UID == l.UID && l.Receipt.State == receipt.Unreadable {
			l.Receipt = p.Receipt
			v.w.Locks = slices.Clone(v.w.Locks)
			v.w.Locks[i] = l
		}
		v.byPod[l.Pod] = l
		id := l.Receipt.Slot()
		if id != receipt.NoID {
			v.bySlot[id]++
		}
		if l.Runs != id && l.Runs != receipt.NoID && v.named[l.Pod] == nil { // otherwise it is counted below
			v.bySlot[l.Runs]++
			v.unlocked[l.Runs] = l.Pod
		}
	}
	for _, p := range v.pods { // its receipt was removed
		if p.begun && !v.byPod[p.Name].Receipt.LocksSlot(p.id) {
			v.bySlot[p.id]++
			v.unlocked[p.id] = p.Name
		}
	}
	return v
}

func inverse(slots assignment.Slots) map[string]int {
	ids := make(map[string]int, len(slots))
	for _, id := range slices.Backward(slots.IDs()) { // the lowest one counts
		ids[slots[id]] = id
	}
	return ids
}

func read(p Pod) *pod {
	out := &pod{Pod: p}
	out.readAgent()
	if !p.Assigned || json.Unmarshal([]byte(p.Identity), &out.was) != nil || out.was.Pod != p.Name || out.was.State != identity.StateAssigned {
		out.was = identity.Identity{ID: receipt.NoID}
	}
	out.id, out.locked = out.Receipt.Slot(), out.Receipt.State == receipt.Locks
	// Begin removes the gate in the same write that sets the id. So a pod with a gate and an id has a copied id, unless its receipt has begun: the cached gate
	// may be older. If the id was removed, the receipt still has the id under which the program runs.
	switch id, err := strconv.Atoi(p.ID); {
	case !p.Assigned:
	case err == nil && (p.Receipt.Begun || !p.Gated):
		out.begun, out.id = true, id
		out.locked = out.locked && p.Receipt.Share.ID == id
	case err != nil && out.locked && p.Receipt.Begun:
		out.begun = true
	case err != nil && !p.Gated && out.was.ID != receipt.NoID: // both were removed
		out.begun, out.id, out.locked = true, out.was.ID, out.locked && p.Receipt.Share.ID == out.was.ID
	}
	if out.begun {
		out.locked = out.locked && (out.was.ID != out.id || p.Receipt.Number == out.was.Number)
		if out.token = p.Receipt.Token; out.token == 0 && out.was.ID == out.id {
			out.token = out.was.Token
		}
	}
	return out
}

// readAgent makes an agent's unreadable receipt lock what was last confirmed. If it locked every partition instead, anyone who may write one pod's receipt
// could stop all pods.
func (p *pod) readAgent() {
	if !p.Agent || p.Receipt.State != receipt.Unreadable {
		return
	}
	p.damaged = true
	p.Receipt.State, p.Receipt.Share = receipt.Locks, receipt.Share{ID: p.Receipt.Share.ID}
	if c := p.Proposal.Confirmed; c != nil {
		p.Receipt.Share = c.Share
	}
	if p.Receipt.Share.Empty() {
		p.Receipt.State = receipt.Waits
	}
}

// before reports whether p began before q. A pod that lost its token counts as later than all pods with a token.
func (p *pod) before(q *pod) bool {
	if (p.token == 0) != (q.token == 0) {
		return q.token == 0
	}
	return cmp.Or(cmp.Compare(p.token, q.token), cmp.Compare(p.Name, q.Name)) < 0
}

// under returns the owner of the slot that the pod locks. A pod that has begun keeps this owner for life, even if another object controls it later.
func (v *view) under(p *pod) identity.Owner {
	if p.Under == (identity.Owner{}) {
		return v.w.Owner.Owner
	}
	return p.Under
}

// anothers reports whether the pod now belongs to another owner, which writes its receipt. A relabelled pod has no owner.
func (p *pod) anothers() bool { return !p.Owned && p.Controller != "" }

// byProcess reports whether a process of the pod wrote its receipt: no controller writes such a receipt. The pod works under what the receipt locks.
func (p *pod) byProcess() bool {
	r := p.Receipt
	return !p.Gated && !r.Begun && (r.Token > 0 || r.HandsOver || r.Strict || r.Rank > 0 || r.Share.Of > 0)
}

// canTake reports whether the controller may take a slot for the pod.
func (p *pod) canTake() bool {
	return p.Assigned && p.Gated && !p.OtherGates && !p.Newer && !p.BadNumber && !p.Placed && !p.Terminating && !p.begun
}

// moved reports whether the pod locks something of another owner.
func (p *pod) moved() bool { return p.Former.State == receipt.Locks }

// available reports whether the pod counts as available to the Deployment.
func (v *view) available(p *pod) bool {
	return p.Ready && !p.Terminating && !p.AvailableAt.After(v.w.Now)
}

// current reports whether the pod is of the current revision.
func (v *view) current(p *pod) bool { return p.Controller != "" && p.Controller == v.w.Owner.Revision }

// listens reports whether the agent gets proposals of this owner. A relabelled pod keeps its owner: that of the proposal, or of the receipt if another program
// removed the proposal.
func (v *view) listens(p *pod) bool {
	keeps := p.Proposal.Owner == v.w.Owner.Owner || !p.Told && p.Receipt.State == receipt.Locks && !p.moved()
	return p.Agent && (p.Owned || p.Controller == "" && keeps)
}

// proposed returns the slot that the map proposes to the pod (T1).
func (v *view) proposed(p *pod) (int, bool) {
	id, ok := v.ids[p.Name]
	return id, ok && id < v.w.Owner.Count
}

func (v *view) has(p *pod) bool {
	_, has := v.ids[p.Name]
	return has || p.Receipt.Locked()
}

// holds returns the slot that the pod locks or that the map proposes to it.
func (v *view) holds(p *pod) (id int, has bool) {
	if p.begun || p.Receipt.Locked() {
		return p.id, true
	}
	id, has = v.ids[p.Name]
	return id, has
}

// doubled reports whether another pod of the controller also runs under the pod's id. Only the later of the two is removed.
func (v *view) doubled(p *pod) bool { return p.begun && len(v.running[p.id]) > 1 }
