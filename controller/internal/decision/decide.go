package decision

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Decide returns everything that should be done.
func Decide(w World) Decision {
	v := newView(w)
	if w.Owner.Frozen != "" {
		v.wait()
		return v.d
	}
	in := v.input()
	v.d.Plan = proposal.Plan(in)
	v.next = w.Owner.State
	if v.d.Plan.Next == nil && len(in.State.Handover) < len(v.next.Handover) {
		v.d.Plan.Next = &in.State
	}
	if v.d.Failing = v.failing(); v.d.Failing && w.Rests || w.Keeps {
		v.d.Plan.Next = nil
	}
	if v.d.Plan.Next != nil {
		v.next = *v.d.Plan.Next
		v.ids = inverse(v.next.Slots)
	}
	v.turns()
	for i := range v.pods {
		v.step(v.pods[i])
	}
	slices.SortStableFunc(v.d.Propose, func(a, b Propose) int { return cmp.Compare(a.rank, b.rank) })
	if v.all || len(v.d.Only) > mostOnly || len(w.Former) > 0 {
		v.d.Only = nil
	}
	v.doubles()
	forced := len(v.d.Remove)
	v.remove()
	if v.replace(); w.Keeps { // no pod would get their ids
		v.d.Remove = v.d.Remove[:forced]
	}
	v.probe()
	v.d.List, v.d.Verify = w.Unlisted && v.d.Plan.Next != nil, len(v.d.Remove) > 0 && !w.Verified
	v.wait()
	v.later()
	return v.d
}

// mostOnly is how many slots T3 lists by their labels. Above that, it lists all.
const mostOnly = 64

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
	// first is the machine number of id 0, if it is known.
	first int
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
	// Begin removes the gate in the same write that sets the id. So a gate means that the id was copied, unless the receipt says that the pod has begun: the
	// cached gate may be older. If the id was removed, the receipt tells under which id the program runs.
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
		if out.token = p.Receipt.Token; out.token == 0 && out.was.ID == out.id {
			out.token = out.was.Token
		}
	}
	return out
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
	return p.Assigned && p.Gated && !p.OtherGates && !p.Newer && !p.Placed && !p.Terminating && !p.begun
}

// available reports whether the pod counts as available to the Deployment.
func (v *view) available(p *pod) bool {
	return p.Ready && !p.Terminating && !p.AvailableAt.After(v.w.Now)
}

// current reports whether the pod is of the current revision.
func (v *view) current(p *pod) bool { return p.Controller != "" && p.Controller == v.w.Owner.Revision }

// input returns what the plan sees. A running pod locks its id, even if its receipt was changed. A pod that cannot take anything is left out. Locks that T3
// showed are included, because otherwise the plan would propose again what T3 refused.
func (v *view) input() proposal.Input {
	o := v.w.Owner
	in := proposal.Input{
		Count: o.Count, State: v.state(), Room: o.Room, Now: v.w.Now, Central: true, Revision: o.Revision,
		Rollout:    proposal.Rollout{Current: o.Replaces && o.Revision != "", MaxUnavailable: o.MaxUnavailable},
		Partitions: v.division(), FreeFor: v.w.FreeFor,
	}
	spare := v.spare()
	for _, p := range v.pods {
		if p.Refused && !p.begun && !p.Receipt.Locked() {
			if spare--; spare < 0 {
				continue
			}
		}
		q := p.Pod.Pod
		q.Central = p.Agent
		switch q.Gated = p.canTake(); {
		case p.begun:
			q.Receipt.State, q.Receipt.Share = receipt.Locks, receipt.Share{ID: p.id}
		case p.Assigned && !q.Gated && !q.Receipt.Locked():
			continue
		}
		if v.current(p) && v.available(p) {
			in.Rollout.Available++
		}
		in.Pods = append(in.Pods, q)
	}
	for _, l := range v.w.Locks {
		if id := l.Receipt.Slot(); v.named[l.Pod] == nil && id != receipt.NoID { // a former owner still has the pod, and only T3 shows it
			in.Pods = append(in.Pods, proposal.Pod{
				Name: l.Pod, UID: l.UID, Ordinal: proposal.NoOrdinal, Receipt: receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: id}},
			})
		}
	}
	return in
}

// spare returns how many slots are left when each pod that can be written has one. It is negative if there are too few slots.
func (v *view) spare() int {
	held, waiting := map[int]bool{}, 0
	for _, p := range v.pods {
		id, has := v.holds(p)
		switch {
		case p.Refused && !p.begun && !p.Receipt.Locked():
		case has && id < v.w.Owner.Count:
			held[id] = true
		case !has && p.Owned && !p.Terminating && (p.canTake() || p.Receipt.State == receipt.Waits):
			waiting++
		}
	}
	return v.w.Owner.Count - len(held) - waiting
}

// failing reports whether the plan changes the map only for pods whose programs failed. These give ids up and take others without end, and one write can serve
// all of them.
func (v *view) failing() bool {
	plan := v.d.Plan
	if plan.Next == nil || plan.Partitions.Changed || !maps.Equal(plan.Next.Handover, v.w.Owner.State.Handover) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(plan.Freed, plan.Filled), func(c proposal.Change) bool {
		p := v.named[c.Pod]
		return p == nil || p.Receipt.Failures() == 0
	})
}

// state returns the owner's state without entries and requests that give a pod another slot than its ordinal. Such entries were written by hand, or are of an
// earlier pod of that name. A pod that begins with such an id would keep it.
func (v *view) state() assignment.State {
	out, misled := v.w.Owner.State, map[string]int{}
	wrong := func(p *pod, id int) bool {
		return p != nil && !p.Receipt.Locked() && p.Ordinal >= 0 && p.Ordinal < v.w.Owner.Count && id != p.Ordinal
	}
	held := map[int]bool{}
	for _, p := range v.pods {
		id, named := v.ids[p.Name]
		if held[p.id] = true; named && p.canTake() && wrong(p, id) {
			misled[p.Name] = id
		}
	}
	out.Handover = v.requests()
	// The plan requests no free slot. It may request a slot of another ordinal if its holder should go.
	maps.DeleteFunc(out.Handover, func(id int, by string) bool { return !held[id] && wrong(v.named[by], id) })
	if len(misled) == 0 {
		return out
	}
	slots := maps.Clone(out.Slots)
	for _, p := range v.pods {
		has := out.Slots[p.Ordinal]
		stays := v.named[has] != nil
		if _, also := misled[has]; !stays || also {
			if id, is := misled[p.Name]; is {
				delete(slots, id)
			}
		}
	}
	out.Slots = slots
	return out
}

// step decides the next step for one pod. It ignores pods that take for themselves.
func (v *view) step(p *pod) {
	switch {
	case p.Agent:
		v.agent(p)
	case !p.Assigned:
	case p.anothers():
	case !p.begun && p.byProcess(): // a user added the label to the pod
	case p.Receipt.State == receipt.Unreadable && !p.begun:
		v.d.Withdraw = append(v.d.Withdraw, p.Name)
	case p.begun && (!p.locked || p.Hidden):
		v.d.Take = append(v.d.Take, Take{Pod: p.Name, ID: p.id, Under: v.under(p).String(), Begun: true, Token: p.token, Number: p.machine()})
	case p.begun && p.Receipt.Begun:
		v.publish(p)
	case p.locked:
		v.confirm(p)
	case p.canTake() && p.Receipt.State != receipt.GaveUp:
		if id, ok := v.proposed(p); ok && !v.w.Keeps && !v.rests(id) {
			v.d.Take = append(v.d.Take, Take{Pod: p.Name, ID: id, Under: v.space.String(), Number: v.number(p, id)})
		}
	}
}

// proposed returns the slot that the map proposes to the pod (T1).
func (v *view) proposed(p *pod) (int, bool) {
	id, ok := v.ids[p.Name]
	return id, ok && id < v.w.Owner.Count
}

// confirm does T3 and the next step for a pod with a lock that has not begun.
func (v *view) confirm(p *pod) {
	lock, shown := v.byPod[p.Name]
	switch {
	case p.Terminating:
	case !p.begun && (p.id >= v.w.Owner.Count || !p.canTake() || v.under(p) != v.space || p.Refused && v.spare() < 0 || p.FirstNumber > 0 && p.machine() == 0):
		v.d.Withdraw = append(v.d.Withdraw, p.Name)
	case p.Hidden: // T3 would never show it
		v.d.Take = append(v.d.Take, Take{Pod: p.Name, ID: p.id, Under: v.space.String(), Number: p.machine()})
	case !v.answered(p):
		v.confirms(p)
	case !shown || lock.UID != p.UID || lock.Text != p.Text:
		// The known state of the pod is old. An event with the new state will come.
	case v.bySlot[p.id] > 1 && p.begun && (v.withdraw(p) || v.doubled(p)):
	case v.bySlot[p.id] > 1 && p.begun:
		v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseClashes})
	case v.bySlot[p.id] > 1, v.shared(p) && !p.begun:
		v.d.Withdraw = append(v.d.Withdraw, p.Name)
	default:
		words, token := v.published(p, lock.Version)
		v.d.Begin = append(v.d.Begin, Begin{Pod: p.Name, ID: p.id, Under: v.under(p).String(), Token: token, Number: p.machine(), Gated: p.Gated && !p.begun, Published: words})
	}
}

// confirms asks for T3 of the pod's lock. Locks of the same slot are found by label, but locks of the same partitions are not.
func (v *view) confirms(p *pod) {
	if v.d.Confirm = true; p.Agent && p.Receipt.Share.Of == 0 {
		v.d.Only = append(v.d.Only, p.Receipt.Share.ID)
	} else {
		v.all = true
	}
}

// answered reports whether T3 covered everything that the pod locks. A list for one slot shows no locks of partitions.
func (v *view) answered(p *pod) bool {
	return v.w.Locks != nil && v.covered && (v.w.Asked == nil || p.Agent && p.Receipt.Share.Of == 0 && slices.Contains(v.w.Asked, p.Receipt.Share.ID))
}

// withdraw reports whether all other pods that lock the pod's slot have not begun. These withdraw or end, and then the pod is confirmed.
func (v *view) withdraw(p *pod) bool {
	others := 0
	for _, q := range v.pods {
		if lock, shown := v.byPod[q.Name]; shown && q.Assigned && !q.begun && !q.byProcess() && lock.Text == q.Text && !lock.Receipt.Begun && lock.Receipt.LocksSlot(p.id) {
			others++
		}
	}
	return v.bySlot[p.id] == 1+others
}
