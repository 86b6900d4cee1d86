package decision

import (
	"maps"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Propose tells the process of a pod what is proposed to it.
type Propose struct {
	Pod string
	// Text are the bytes of the receipt that Next confirms, empty if it confirms nothing new.
	Text string
	Next receipt.Proposal

	rank rank
}

// CanWait reports whether nothing is idle, and nothing waits to move, until the process hears of it. So it is with a new count.
func (b Propose) CanWait() bool { return b.rank == tells }

// rank says how urgent a message to a process is. What is confirmed, or to be taken, rests until its process hears of it.
type rank int

const (
	confirms rank = iota
	gives
	asks
	tells
)

// division is how the controller divides partitions. Without agents they are not its business.
func (v *view) division() proposal.Division {
	o := v.w.Owner
	return proposal.Division{
		Wish: o.Wish, Vacant: v.w.Vacant, AtOnce: !o.Wish.HasFailoverAfter && !o.RollsNow, Joins: v.w.Joins, Gathers: v.w.Gathers,
		Unchanged: !slices.ContainsFunc(v.pods, func(p *pod) bool { return p.Agent }),
	}
}

// readAgent has a receipt of an agent that cannot be read lock what was confirmed last, and not every partition: who may write one pod's receipt would
// stop all pods.
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

// moved reports whether the pod locks something of another owner.
func (p *pod) moved() bool { return p.Former.State == receipt.Locks }

// listens reports whether the process of the pod is told what this owner proposes. One that was relabelled keeps its owner: that of the proposal, or of
// the receipt if another program removed the proposal.
func (v *view) listens(p *pod) bool {
	keeps := p.Proposal.Owner == v.w.Owner.Owner || !p.Told && p.Receipt.State == receipt.Locks && !p.moved()
	return p.Agent && (p.Owned || p.Controller == "" && keeps)
}

// agent decides what the process of a pod is told, and confirms its lock (T3). One that ends without a slot need not know why.
func (v *view) agent(p *pod) {
	if !v.listens(p) {
		return
	}
	next, text := v.offer(p), ""
	if p.Terminating && next.Share.Empty() && (!p.Told || p.Proposal.Share.Empty()) {
		return
	}
	if v.unconfirmed(p) {
		lock, shown := v.byPod[p.Name]
		switch {
		case !v.answered(p): // one write is to say both
			v.confirms(p)
			return
		case shown && lock.UID == p.UID && lock.Text == p.Text: // otherwise what is known of the pod is old, and news is on its way
			next.Confirmed, text = v.others(p), p.Text
		}
	}
	if !p.Told || !same(next, p.Proposal, p.holds()) {
		v.d.Propose = append(v.d.Propose, Propose{Pod: p.Name, Text: text, Next: next, rank: p.rank(next, text)})
	}
}

// holds are the partitions that the pod's receipt locks for this owner.
func (p *pod) holds() placement.Set {
	if p.Receipt.State != receipt.Locks || p.damaged || p.moved() {
		return placement.Set{}
	}
	return p.Receipt.Share.Partitions
}

func (p *pod) rank(next receipt.Proposal, text string) rank {
	switch more := toTake(next, p.holds()); {
	case text != "":
		return confirms
	case !more.Empty() || !next.Share.Empty() && !p.Receipt.Locked():
		return gives
	case !p.Told || next.Requester != "" || !next.Yield.Intersect(p.holds()).Empty():
		return asks
	}
	return tells
}

// toTake are the partitions that a process takes for a proposal, beside those that it has.
func toTake(p receipt.Proposal, has placement.Set) placement.Set {
	return p.Share.Partitions.Minus(has).Minus(p.Yield)
}

// unconfirmed reports whether T3 is to be done for the pod. A lock that only gives, or notes tokens, is as confirmed as the one before it.
func (v *view) unconfirmed(p *pod) bool {
	if p.Receipt.State != receipt.Locks || p.damaged || p.moved() || p.Settled {
		return false
	}
	c := p.confirmed(v.w.Owner)
	return c == nil || c.Write != p.Receipt.Write
}

// confirmed is what the pod was told of its receipt for this owner.
func (p *pod) confirmed(o Owner) *receipt.Confirmed {
	if p.Proposal.Owner != o.Owner {
		return nil
	}
	return p.Proposal.Confirmed
}

// offer is what map and row propose to the pod.
func (v *view) offer(p *pod) receipt.Proposal {
	o := v.w.Owner
	out := receipt.Proposal{UID: p.UID, Owner: o.Owner, Count: v.count(p), Share: receipt.Nothing(), Confirmed: p.confirmed(o)}
	mine := proposal.Mine{Pod: p.Name, Divides: true, HandsOver: p.Receipt.HandsOver, Locked: receipt.Nothing()}
	id, has := v.ids[p.Name]
	if p.Receipt.State == receipt.Locks && !p.moved() {
		id, has, mine.Locked = p.Receipt.Share.ID, true, p.Receipt.Share
	}
	if mine.Works = mine.Locked; v.next.Row != nil && mine.Locked.Partitions.Subset(v.next.Row.Owners[id]) {
		mine.Works.Partitions = v.next.Row.Owners[id] // the plan knows what the pod works on, so the row is not wrong about it, and one target serves all pods
	}
	if v.offers == nil {
		v.offers = proposal.NewOffers(o.Count, v.next, o.Wish, nil)
	}
	if out.Shared = v.offers.Shared(mine); !has {
		out.Why = v.reason(p).sentence()
		return out
	}
	out.Share, out.Yield = v.offers.At(mine, id)
	mine.Locked = p.Receipt.Share // a slot of a former owner can be asked for, too
	if by := v.offers.Requester(mine); by != "" && v.sound(by, p) {
		out.Requester = by
	}
	out.MadeRoom = v.madeRoom(p)
	return out
}

// madeRoom reports whether a pod of another revision has given a slot up, and wants one.
func (v *view) madeRoom(p *pod) bool {
	if v.gave == nil {
		v.gave = map[string]bool{}
		for _, q := range v.pods {
			if q.Owned && !q.Terminating && !v.has(q) && q.MakesRoom() {
				v.gave[q.Controller] = true
			}
		}
	}
	return v.w.Owner.Replaces && (len(v.gave) > 1 || len(v.gave) == 1 && !v.gave[p.Controller])
}

// count is the number of slots that holds for the pod. One that Kubernetes is to remove keeps its slot until then, and the count that it had.
func (v *view) count(p *pod) int {
	n, id := v.w.Owner.Count, p.Receipt.Slot()
	if p.Condemned && id >= n {
		return max(p.Proposal.Count, id+1)
	}
	return n
}

// sound reports whether the pod of this name should have the slot of an agent: it lives, is this owner's and waits; and it is of the current revision
// and the agent is not, or the agent is condemned. No other request in the map stops work.
func (v *view) sound(by string, p *pod) bool {
	q := v.named[by]
	if q == nil || !q.Owned || q.Terminating || v.has(q) || q.Receipt.State != receipt.Waits && !q.canTake() {
		return false
	}
	return v.w.Owner.Replaces && v.current(q) && !v.current(p) || p.Condemned && !q.Condemned
}

func (v *view) has(p *pod) bool {
	_, has := v.ids[p.Name]
	return has || p.Receipt.Locked()
}

// requests are those of the owner, without those for slots of agents that should not have them.
func (v *view) requests() assignment.Slots {
	all := maps.Clone(v.w.Owner.State.Handover)
	for _, p := range v.pods {
		id := p.Receipt.Slot()
		if by := all[id]; by != "" && v.listens(p) && !v.sound(by, p) {
			delete(all, id)
		}
	}
	return all
}

// same reports whether both say the same to a process that has these partitions. What it was told to let go of, and has let go of, is no news.
// MadeRoom alone is no reason to write: it is for a process that ends soon after this.
func same(a, b receipt.Proposal, has placement.Set) bool {
	if a.Share.ID != b.Share.ID || a.Share.Of != b.Share.Of || !toTake(a, has).Equal(toTake(b, has)) || !a.Yield.Intersect(has).Equal(b.Yield.Intersect(has)) ||
		(a.Confirmed == nil) != (b.Confirmed == nil) {
		return false
	}
	if c, d := a.Confirmed, b.Confirmed; c != nil &&
		(c.Write != d.Write || c.Slot != d.Slot || c.By != d.By || !c.Share.Equal(d.Share) || !c.Partitions.Equal(d.Partitions)) {
		return false
	}
	return a.UID == b.UID && a.Owner == b.Owner && a.Count == b.Count && a.Shared == b.Shared && a.Requester == b.Requester && a.Why == b.Why
}

// Continues reports whether a lock only gives something, or notes tokens. So it is as confirmed as the one before it. One that repeats what it replaces
// is that of a new process, which needs T3.
func Continues(before, now receipt.Receipt) bool {
	if before.State != receipt.Locks || now.State != receipt.Locks || before.Owner != now.Owner || !before.Share.Covers(now.Share) {
		return false
	}
	return !now.Share.Covers(before.Share) || notes(now) > notes(before)
}

// notes is how much a receipt says that its pod holds.
func notes(r receipt.Receipt) (n int) {
	if r.Token > 0 {
		n++
	}
	for _, s := range r.Tokens {
		n += s.Set.Len()
	}
	return n
}

// Noted reports whether a receipt notes that its pod holds all that it locks.
func Noted(r receipt.Receipt) bool { return r.Token > 0 && notes(r) == 1+r.Share.Partitions.Len() }
