package decision

import (
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Propose writes a proposal for an agent.
type Propose struct {
	Pod string
	// Text is the receipt annotation that Next confirms, empty if Next confirms nothing new.
	Text string
	Next receipt.Proposal

	rank rank
}

// CanWait reports whether this proposal can be delayed without leaving anything idle or blocking a move (a new count, for example).
func (b Propose) CanWait() bool { return b.rank == tells }

// rank is how urgent a proposal is. What it confirms or gives is idle until the agent reads it.
type rank int

const (
	confirms rank = iota
	gives
	asks
	tells
)

// agent decides what the agent is told, and confirms its lock (T3). A pod that ends without a slot is not told why it waits.
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
		case !v.answered(p): // one write should contain both
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

// holds returns the partitions that the pod's receipt locks for this owner.
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

// toTake returns the partitions that an agent must take for a proposal, in addition to those that it has.
func toTake(p receipt.Proposal, has placement.Set) placement.Set {
	return p.Share.Partitions.Minus(has).Minus(p.Yield)
}

// unconfirmed reports whether the pod needs T3. A lock that only gives something up, or notes tokens, keeps the earlier confirmation.
func (v *view) unconfirmed(p *pod) bool {
	if p.Receipt.State != receipt.Locks || p.damaged || p.moved() || p.Settled {
		return false
	}
	c := p.confirmed(v.w.Owner)
	return c == nil || c.Write != p.Receipt.Write
}

// confirmed returns the last confirmation of the pod's receipt for this owner, or nil.
func (p *pod) confirmed(o Owner) *receipt.Confirmed {
	if p.Proposal.Owner != o.Owner {
		return nil
	}
	return p.Proposal.Confirmed
}

// offer returns what the map and the row propose to the pod.
func (v *view) offer(p *pod) receipt.Proposal {
	o := v.w.Owner
	out := receipt.Proposal{UID: p.UID, Owner: o.Owner, Count: v.count(p), Share: receipt.Nothing(), Confirmed: p.confirmed(o)}
	mine := proposal.Mine{Pod: p.Name, Divides: true, HandsOver: p.Receipt.HandsOver, Locked: receipt.Nothing()}
	id, has := v.ids[p.Name]
	if p.Receipt.State == receipt.Locks && !p.moved() {
		id, has, mine.Locked = p.Receipt.Share.ID, true, p.Receipt.Share
	}
	if mine.Works = mine.Locked; v.next.Row != nil && mine.Locked.Partitions.Subset(v.next.Row.Owners[id]) {
		mine.Works.Partitions = v.next.Row.Owners[id] // the plan knows the pod's partitions, so the row is right about them, and one target serves all pods
	}
	if v.offers == nil {
		v.offers = proposal.NewOffers(o.Count, v.next, o.Wish, nil)
	}
	if out.Shared = v.offers.Shared(mine); !has {
		out.Why = v.reason(p).sentence()
		return out
	}
	out.Share, out.Yield = v.offers.At(mine, id)
	mine.Locked = p.Receipt.Share // a slot of a former owner can also be requested
	if by := v.offers.Requester(mine); by != "" && v.sound(by, p) {
		out.Requester = by
	}
	out.MadeRoom = v.madeRoom(p)
	return out
}

// madeRoom reports whether a pod of another revision has given up a slot and wants one.
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

// count returns the count for the pod. A pod that Kubernetes will remove keeps its slot and its earlier count until then.
func (v *view) count(p *pod) int {
	n, id := v.w.Owner.Count, p.Receipt.Slot()
	if p.Condemned && id >= n {
		return max(p.Proposal.Count, id+1)
	}
	return n
}

// same reports whether two proposals mean the same to an agent with these partitions. Partitions that it has already released are ignored. A change of MadeRoom
// alone is not written: it matters only to a process that ends soon after this.
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

// Continues reports whether a lock only gives something up, or notes tokens. Then the earlier confirmation covers it. A lock that repeats the earlier one comes
// from a new process, which needs T3.
func Continues(before, now receipt.Receipt) bool {
	if before.State != receipt.Locks || now.State != receipt.Locks || before.Owner != now.Owner || !before.Share.Covers(now.Share) {
		return false
	}
	return !now.Share.Covers(before.Share) || notes(now) > notes(before)
}

// notes returns how many tokens a receipt contains: one for the slot and one for each partition.
func notes(r receipt.Receipt) (n int) {
	if r.Token > 0 {
		n++
	}
	for _, s := range r.Tokens {
		n += s.Set.Len()
	}
	return n
}

// Noted reports whether a receipt contains tokens for everything that it locks.
func Noted(r receipt.Receipt) bool { return r.Token > 0 && notes(r) == 1+r.Share.Partitions.Len() }
