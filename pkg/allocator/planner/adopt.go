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

// adopt replaces the owner by a newer version of it.
func (p *Planner) adopt(owner store.Owner) {
	s, before := p.o.Process.State(), p.view.owner
	if p.view.owner, p.view.late = owner, false; p.view.state != suspected && p.view.state != other {
		p.view.state = seen
	}
	if owner.Controlled && !before.Controlled {
		p.view.suspect()
	}
	if r := &p.view.request; owner.Record.State.Handover[s.Locks.Lock.Share.ID] != r.by {
		r.by, r.granted = "", false // a refused requester leaves the map, and may ask again
	}
	p.heard(s, before)
}

// heard updates the plans after a newer version of the owner.
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
		from := p.o.Process.Proposed(id, now.Add(p.o.Pace.Queue(q.contenders))) // all pods hear of it at the same moment
		if from.After(p.listenAt) {
			p.listenAt = from
		}
		return
	}
	p.o.Process.Proposed(id, time.Time{})
}

// hearUndone records that the owner no longer has what it had about this pod. All pods concerned wait longer, not only the pod that wrote it.
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

// noteUndone records a write, and whether it repeats a change that others undid. The process may have heard of that already.
func (p *Planner) noteUndone(is, next assignment.State) {
	q := &p.plans
	if !q.heardUndone && (q.wrote.Undone(is, next) || !is.Row.Same(next.Row) && !q.was.Same(q.wrote.Row) && q.wrote.Row.Same(next.Row)) {
		p.undone()
	}
	q.was, q.wrote, q.heardUndone = is.Row, next, false
}

// undone delays the next turns of this process.
func (p *Planner) undone() {
	const told = 4 // times in a row
	if p.plans.undone.Again(p.o.Clock.Now()) == told {
		p.o.Tell(event.Undone{Longest: pace.MaxDamping})
	}
}
