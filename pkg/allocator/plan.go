package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// plan reads the owner unless a stream has it, lists the pods, decides, and writes what is proposed.
func (a *Allocator) plan(ctx context.Context) error {
	p := &a.plans
	slow := a.pace.Loaded()
	busy := !p.extended && p.contenders > 1 && slow > a.pace.Scale(a.view.owner.Count)
	switch {
	case a.clears():
		return a.clear(ctx)
	case !a.view.fresh && (busy || !a.contact.UpToDate()):
		return a.readOwner(ctx) // the time that it takes says how busy the server is now
	case busy:
		p.extended = true // too many would plan before the first one's write is heard of
		p.turn = a.clock.Now().Add(a.turnIn(slow))
		return nil
	}
	owner := a.view.owner
	began := a.clock.Now()
	decision, err := a.decide(ctx, owner)
	a.happened.Tell(event.Planned{Took: a.clock.Since(began), Err: err, About: owner.About(), Foreign: decision.Foreign})
	if err != nil {
		return err
	}
	if decision.Next == nil {
		a.inVain(owner, decision)
		return nil
	}
	if decision.HandOver.AskedFor(a.o.Pod) && a.state.Lock.State == receipt.None {
		if err := a.write(ctx, waiting()); err != nil { // so that it counts as a hand-over under way when it has the slot
			return err
		}
	}
	written, err := a.o.Store.Propose(context.WithoutCancel(ctx), owner, *decision.Next) // who ends knows what it has proposed
	a.pace.Planned(a.clock.Since(began))
	switch {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrAmbiguous):
		p.contenders = min(max(2*p.contenders, 2), mostContenders)
		a.view.outdate()
		a.view.late = errors.Is(err, store.ErrAmbiguous)
		a.state.Late = a.state.Late || a.view.late // whatever a read shows: it may arrive later, while the version that it tests still stands
		return err
	case errors.Is(err, store.ErrNotKept):
		a.adopt(written)
		p.undone.Again(a.clock.Now())
		return err
	case err != nil:
		return err
	}
	a.wait.retry.Reset()
	if a.state.Lock.State == receipt.Locks {
		a.changes.Restored(owner, decision, a.state.Lock.Share)
	}
	a.changes.Wrote(owner, decision, func(id int) time.Duration { return p.vacant.For(id, a.clock.Now()) })
	a.noteUndone(owner.Record.State, *decision.Next)
	p.made, p.planned, p.decision = true, written, decision
	p.unsureAt = a.clock.Now().Add(a.pace.ReadAgain())
	a.adopt(written)
	p.turn, p.drops, p.contenders = time.Time{}, false, 1
	return nil
}

// decide lists the pods and plans for what it finds. If a Deployment has no slot for this pod, or a hand-over is under way, it reads where the
// pod stands in the rolling update.
func (a *Allocator) decide(ctx context.Context, owner store.Owner) (d proposal.Decision, err error) {
	pods, err := census.Survey(ctx, a.o.Store, owner)
	if err != nil {
		return d, err
	}
	a.plans.rollout = proposal.Rollout{}
	d = proposal.Plan(a.input(owner, pods, a.plans.rollout))
	next := owner.Record.State
	if d.Next != nil {
		next = *d.Next
	}
	if _, has := next.Slots.Of(a.o.Pod); !owner.Rolls() || a.ends || has && len(owner.Record.State.Handover) == 0 {
		return d, nil
	}
	own, err := a.o.Store.RevisionOf(ctx, a.pod)
	switch {
	case errors.Is(err, store.ErrGone): // no revision of the owner's any more
		return d, nil
	case err != nil:
		return d, err
	}
	a.plans.rollout = proposal.Rollout{Current: own.Current(owner), MaxUnavailable: owner.Rollout.MaxUnavailable, Available: own.Available}
	return proposal.Plan(a.input(owner, pods, a.plans.rollout)), nil
}

// clear deletes the Leases that are left of slots that the owner does not have any more. It looks again when the time of the next one is over.
func (a *Allocator) clear(ctx context.Context) error {
	left, err := a.lease.Clear(ctx, a.owned())
	a.plans.turn, a.plans.clearAt = time.Time{}, time.Time{}
	if left > 0 || err != nil {
		a.plans.clearAt = a.clock.Now().Add(max(left, sweepTime))
	}
	if !store.Temporary(err) {
		return nil // its Role may not permit to delete, and no work ends for that
	}
	return err
}

// inVain takes in a plan that changes nothing.
func (a *Allocator) inVain(owner store.Owner, d proposal.Decision) {
	p, now := &a.plans, a.clock.Now()
	a.wait.retry.Reset()
	p.turn, p.drops = time.Time{}, false
	a.changes.Large(owner, d)
	if a.state.Lock.State == receipt.Locks {
		a.peers.NeighbourLives()
		if !a.named(owner) {
			p.undone.Again(now) // its entry has no room, or another pod locks its slot, too
		}
		if a.sweeps() {
			p.sweptInVain, p.sweepFrom = p.sweptInVain+1, now
			return
		}
		p.vainUntil = now.Add(a.pace.AtLeast(vainTime*time.Duration(max(1, len(owner.Record.State.Slots)))) * 2 / 3)
		return
	}
	if was := p.decision.WhyNot; d.WhyNot != was && (d.WhyNot == proposal.WhyLimit || d.WhyNot == proposal.WhyKept) {
		a.happened.Tell(event.NotHandedOver{ID: receipt.NoID, Requester: a.o.Pod, Why: event.ObstacleNotAsked, Detail: string(d.WhyNot)})
	}
	p.made, p.planned, p.decision = true, owner, d
	p.contenders, p.unsureAt, p.vainUntil = max(1, d.Waiting), now.Add(a.pace.ReadAgain()), now.Add(p.again.Next())
	switch {
	case d.Reserved == 0:
		p.reservedSince = time.Time{}
	case p.reservedSince.IsZero():
		p.reservedSince = now
	}
	if d.TooLarge != nil {
		a.happened.Tell(event.NoRoom{About: a.view.owner.About(), Detail: d.TooLarge.Error()})
	}
}
