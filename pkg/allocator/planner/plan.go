package planner

import (
	"context"
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Plan reads the owner unless a stream has it, lists the pods, decides, and writes the proposal.
func (p *Planner) Plan(ctx context.Context) (source.Outcome, error) {
	s, q := p.o.Process.State(), &p.plans
	slow := p.o.Pace.Loaded()
	busy := !q.extended && q.contenders > 1 && slow > p.o.Pace.Scale(p.view.owner.Count)
	switch {
	case p.clears(s):
		q.turn = time.Time{}
		return source.Outcome{}, q.leases.Delete(ctx, p.o.Lease, p.view.owner.Count, p.o.Clock.Now)
	case !p.view.fresh && (busy || !p.o.Contact.UpToDate()):
		return source.Outcome{}, p.ReadOwner(ctx) // the time that it takes shows how busy the server is
	case busy:
		q.extended = true // too many pods would plan before they hear of the first one's write
		q.turn = p.o.Clock.Now().Add(p.turnIn(s, slow))
		return source.Outcome{}, nil
	}
	owner := p.view.owner
	began := p.o.Clock.Now()
	decision, err := p.decide(ctx, s, owner)
	p.o.Tell(event.Planned{Took: p.o.Clock.Since(began), Err: err, About: owner.About(), Foreign: decision.Foreign})
	switch {
	case err != nil:
		return source.Outcome{}, err
	case decision.Next == nil:
		p.inVain(s, owner, decision)
		return source.Outcome{Made: true}, nil
	case decision.HandOver.AskedFor(p.o.Pod) && s.Locks.Lock.State == receipt.None:
		if err := p.o.Process.WriteWaiting(ctx); err != nil { // so that it counts as a hand-over under way when it has the slot
			return source.Outcome{}, err
		}
	}
	written, err := p.o.Store.Propose(context.WithoutCancel(ctx), owner, *decision.Next) // a process that ends must know what it has proposed
	p.o.Pace.Planned(p.o.Clock.Since(began))
	return p.proposed(owner, decision, written, err)
}

// proposed records how the write of a plan ended.
func (p *Planner) proposed(owner store.Owner, decision proposal.Decision, written store.Owner, err error) (source.Outcome, error) {
	q := &p.plans
	switch {
	case errors.Is(err, request.ErrConflict), errors.Is(err, request.ErrAmbiguous):
		q.contenders = min(max(2*q.contenders, 2), mostContenders)
		p.view.outdate()
		p.view.late = errors.Is(err, request.ErrAmbiguous)
		return source.Outcome{Late: p.view.late}, err // despite what a read shows, the write may arrive while the version that it tests still stands
	case errors.Is(err, request.ErrNotKept):
		p.adopt(written)
		q.undone.Again(p.o.Clock.Now())
		return source.Outcome{}, err
	case err != nil:
		return source.Outcome{}, err
	}
	if lock := p.o.Process.State().Locks.Lock; lock.State == receipt.Locks {
		p.changes.Restored(owner, decision, lock.Share)
	}
	p.changes.Wrote(owner, decision, func(id int) time.Duration { return q.vacant.For(id, p.o.Clock.Now()) })
	p.noteUndone(owner.Record.State, *decision.Next)
	q.made, q.planned, q.decision = true, written, decision
	q.unsureAt = p.o.Clock.Now().Add(p.o.Pace.ReadAgain())
	p.adopt(written)
	q.turn, q.drops, q.contenders = time.Time{}, false, 1
	return source.Outcome{Made: true}, nil
}

// decide lists the pods and plans. If a Deployment has no slot for this pod, or a hand-over is under way, it also reads the pod's progress in the rolling
// update.
func (p *Planner) decide(ctx context.Context, s source.State, owner store.Owner) (d proposal.Decision, err error) {
	pods, err := census.Survey(ctx, p.o.Store, owner)
	if err != nil {
		return d, err
	}
	p.plans.rollout = proposal.Rollout{}
	d = proposal.Plan(p.input(s, pods, p.plans.rollout))
	next := owner.Record.State
	if d.Next != nil {
		next = *d.Next
	}
	if _, has := next.Slots.Of(p.o.Pod); !owner.Rolls() || s.Ends || has && len(owner.Record.State.Handover) == 0 {
		return d, nil
	}
	own, err := p.o.Store.RevisionOf(ctx, s.Pod)
	switch {
	case errors.Is(err, request.ErrGone): // it no longer belongs to a revision of the owner
		return d, nil
	case err != nil:
		return d, err
	}
	p.plans.rollout = proposal.Rollout{Current: own.Current(owner.Rollout, owner.UID), MaxUnavailable: owner.Rollout.MaxUnavailable, Available: own.Available}
	return proposal.Plan(p.input(s, pods, p.plans.rollout)), nil
}

// inVain records a plan that changes nothing.
func (p *Planner) inVain(s source.State, owner store.Owner, d proposal.Decision) {
	q, now := &p.plans, p.o.Clock.Now()
	q.turn, q.drops = time.Time{}, false
	p.changes.Large(owner, d)
	if s.Locks.Lock.State == receipt.Locks {
		p.peers.NeighbourLives()
		if !p.named(s, owner) {
			q.undone.Again(now) // its entry has no room, or another pod also locks its slot
		}
		if p.sweeps(s) {
			q.sweptInVain, q.sweepFrom = q.sweptInVain+1, now
			return
		}
		q.vainUntil = now.Add(p.o.Pace.AtLeast(vainTime*time.Duration(max(1, len(owner.Record.State.Slots)))) * 2 / 3)
		return
	}
	if was := q.decision.WhyNot; d.WhyNot != was && (d.WhyNot == proposal.WhyLimit || d.WhyNot == proposal.WhyKept) {
		p.o.Tell(event.NotHandedOver{ID: receipt.NoID, Requester: p.o.Pod, Why: event.ObstacleNotAsked, Detail: string(d.WhyNot)})
	}
	q.made, q.planned, q.decision = true, owner, d
	q.contenders, q.unsureAt, q.vainUntil = max(1, d.Waiting), now.Add(p.o.Pace.ReadAgain()), now.Add(q.again.Next())
	switch {
	case d.Reserved == 0:
		q.reservedSince = time.Time{}
	case q.reservedSince.IsZero():
		q.reservedSince = now
	}
	if d.TooLarge != nil {
		p.o.Tell(event.NoRoom{About: p.view.owner.About(), Detail: d.TooLarge.Error()})
	}
}
