package planner

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// adopt replaces the owner by a newer moment of it.
func (p *Planner) adopt(owner store.Owner) {
	s, before := p.o.Process.State(), p.view.owner
	if p.view.owner, p.view.late = owner, false; p.view.state != suspected && p.view.state != other {
		p.view.state = seen
	}
	if owner.Controlled && !before.Controlled {
		p.view.suspect()
	}
	if r := &p.view.request; owner.Record.State.Handover[s.Locks.Lock.Share.ID] != r.by {
		r.by, r.granted = "", false // one that is refused leaves the map, and may come again
	}
	p.heard(s, before)
}

// heard draws what follows from the newer moment of the owner.
func (p *Planner) heard(s source.State, before store.Owner) {
	q, owner, now := &p.plans, p.view.owner, p.o.Clock.Now()
	p.hearUndone(s, before)
	if n := surplusOf(owner); n != q.surplus {
		q.surplus, q.sweptInVain, q.sweepFrom = n, 0, now
	}
	if owner.Count != before.Count && s.Locks.Strict {
		q.leases.Changed(now)
	}
	if abandoned(owner) && !abandoned(before) {
		q.vainUntil = time.Time{}
	}
	p.changes.Heard(owner, s.Locks.Lock.Share)
	if p.o.Divides && !s.Locks.Working.Empty() {
		p.changes.Wish(owner, s.Locks.Working.ID)
	}
	if n := contenders(owner); n > q.contenders || !q.made && q.contenders == 0 {
		q.contenders = n
	}
	id, proposed := owner.Record.State.Slots.Of(p.o.Pod)
	if !proposed {
		id = receipt.NoID
	}
	if !p.named(s, before) && p.named(s, owner) && p.o.Contact.Owner() != nil && !q.made && s.Locks.Lock.State != receipt.Locks {
		from := p.o.Process.Proposed(id, now.Add(p.o.Pace.Queue(q.contenders))) // all hear of it at the same moment
		if from.After(p.listenAt) {
			p.listenAt = from
		}
		return
	}
	p.o.Process.Proposed(id, time.Time{})
}

// hearUndone notes that the owner does not say any more what it said of this pod. All pods that this concerns wait longer, not only the one that wrote it.
func (p *Planner) hearUndone(s source.State, before store.Owner) {
	says := func(owner store.Owner) bool {
		_, asks := owner.Record.State.Handover.Of(p.o.Pod)
		return asks || p.named(s, owner)
	}
	if says(before) && !says(p.view.owner) && s.Locks.Lock.State != receipt.GaveUp && !s.Ends {
		p.plans.heardUndone = true
		p.undone()
	}
}

// noteUndone notes a write, and whether it changes again what others undid of the last one. It may have been heard of already.
func (p *Planner) noteUndone(is, next assignment.State) {
	q := &p.plans
	if !q.heardUndone && (q.wrote.Undone(is, next) || !is.Row.Same(next.Row) && !q.was.Same(q.wrote.Row) && q.wrote.Row.Same(next.Row)) {
		p.undone()
	}
	q.was, q.wrote, q.heardUndone = is.Row, next, false
}

// undone has the next turns of this process come later, whatever the reason.
func (p *Planner) undone() {
	const told = 4 // times in a row
	if p.plans.undone.Again(p.o.Clock.Now()) == told {
		p.o.Tell(event.Undone{Longest: pace.MaxDamping})
	}
}
