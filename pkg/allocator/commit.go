package allocator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
)

// planAndCommit surveys the pods, plans and writes the owner. written is nil if there was nothing to write. The error is an
// *assignment.TooLargeError if there was something and none of it fits.
func (a *Allocator) planAndCommit(ctx context.Context, owner store.Owner, intent plan.Intent, takeReserved bool) (written *store.Owner, decision plan.Decision, err error) {
	a.markBusy()
	start := a.clock.Now()
	defer func() { a.pace.Planned(a.clock.Since(start)) }()
	decision, census, err := a.makePlan(ctx, owner, intent, takeReserved)
	if err != nil {
		return nil, decision, err
	}
	a.tellHeldUp(owner, decision)
	if decision.Next == nil && decision.TooLarge != nil {
		return nil, decision, decision.TooLarge
	}
	if decision.Next == nil || a.changesNothing(owner, decision) {
		return nil, decision, nil
	}
	if decision.HandOver.AskedFor(a.o.Pod) {
		if err := a.showLife(ctx); err != nil { // so that it counts as a hand-over under way when it has the slot
			return nil, decision, err
		}
	}
	o, err := a.store.Commit(ctx, owner, *decision.Next)
	if err != nil {
		return nil, decision, err
	}
	a.quarantined.see(o, a.clock.Now())
	a.happened.Tell(event.Written{
		Epoch: o.Record.State.Epoch, Filled: decision.Filled, Freed: decision.Freed, Asked: decision.HandOver.Asked, WasClean: owner.Clean(),
		Restores: a.tampered(owner),
	})
	a.tellDamage(owner, census)
	a.tellDivision(owner, decision, census)
	a.tellLost(o, decision)
	return &o, decision, nil
}

// makePlan lists the pods and plans for what it finds.
func (a *Allocator) makePlan(ctx context.Context, owner store.Owner, intent plan.Intent, takeReserved bool) (decision plan.Decision, census gc.Census, err error) {
	start := a.clock.Now()
	defer func() { a.happened.Tell(event.Planned{Took: a.clock.Since(start), Err: err}) }()
	census, err = gc.Survey(ctx, a.store, owner)
	if err != nil {
		return decision, census, err
	}
	for _, pod := range census.Live {
		if pod.Name != a.o.Pod {
			continue
		}
		if pod.UID != string(a.pod.UID) {
			return decision, census, a.gone(store.ErrGone) // a successor with the same name is not me
		}
		if a.held == nil && intent == plan.Claim {
			if err := a.learn(ctx, pod.Receipt); err != nil {
				return decision, census, err
			}
		}
	}
	a.markBusy()
	a.departures.forget(census.Live)
	in := a.input(owner, census.Live, intent)
	in.Ended, in.TakeReserved = census.Ended(), takeReserved
	decision, err = a.decide(ctx, owner, in)
	return decision, census, err
}

func (a *Allocator) input(owner store.Owner, live []plan.Pod, intent plan.Intent) plan.Input {
	var vacant map[int]bool
	if a.held != nil { // only a holder hears of all changes of the map
		a.vacancies.see(owner, a.clock.Now()) // the stream may be far behind, and the id may have had another holder meanwhile
		vacant, _ = a.vacancies.over(owner.Wish.FailoverAfter, a.clock.Now())
	}
	a.departures.mark(live)
	return plan.Input{
		Partitions: plan.Partitions{
			Trust: owner.PartitionTrust, Wish: owner.Wish, Vacant: vacant, Joins: a.joins(owner), Renew: owner.Ancient, Strategies: a.shares.strategy,
		},
		Count: owner.Count, State: owner.Record.State, Trust: owner.Trust, FenceOurs: owner.FenceOurs,
		Pods: live, Me: a.o.Pod, Intent: intent, FenceAfter: a.o.FenceAfter, Room: owner.Room(), Now: a.clock.Now(),
		// Some pods need a write of their own, but not with every plan while there is no slot for them.
		StandsBack: a.standBack() > 0,
		// Only some processes recognise an ancient map as idalloc's, so it is written anew for the others.
		NeedsWrite: owner.Ancient || a.writesFirst(owner) && (intent != plan.Claim || named(owner, a)),
	}
}

// decideFor plans with what this process knows of quarantines.
func (a *Allocator) decideFor(in plan.Input, rollout plan.Rollout) plan.Decision {
	in.Rollout = rollout
	d := plan.Plan(in)
	if d.FenceAfter > 0 {
		in.Served = a.quarantined.served(assignment.QuarantineTime(d.FenceAfter))
		d = plan.Plan(in)
	}
	return d
}

// decide plans. If a Deployment has no slot for this pod, or a hand-over is under way, it reads first where the pod stands in the
// rolling update.
func (a *Allocator) decide(ctx context.Context, owner store.Owner, in plan.Input) (plan.Decision, error) {
	a.rollout = plan.Rollout{}
	d := a.decideFor(in, a.rollout)
	_, has := next(in.State, d).Slots.Of(in.Me)
	if !owner.Rolls() || in.Intent == plan.Release || (has && len(in.State.Handover) == 0) {
		return d, nil
	}
	var err error
	if a.rollout, err = a.readRollout(ctx, owner); err != nil {
		return d, err
	}
	return a.decideFor(in, a.rollout), nil
}

// readRollout reads where this pod stands in a Deployment's rolling update.
func (a *Allocator) readRollout(ctx context.Context, owner store.Owner) (plan.Rollout, error) {
	own, err := a.store.RevisionOf(ctx, a.pod)
	if errors.Is(err, store.ErrGone) {
		return plan.Rollout{}, nil // no revision of the owner's any more
	}
	if err != nil {
		return plan.Rollout{}, err
	}
	return plan.Rollout{Current: own.Current(owner), MaxUnavailable: owner.Rollout.MaxUnavailable, Available: own.Available}, nil
}

// next is the owner's state after the decision.
func next(state assignment.State, d plan.Decision) assignment.State {
	if d.Next != nil {
		return *d.Next
	}
	return state
}

func named(owner store.Owner, a *Allocator) bool {
	_, ok := owner.SlotOf(a.o.Pod, a.pod.UID)
	return ok
}

// changesNothing reports whether a write would only change the epoch of a map that nobody can make clean, and give
// this pod nothing that it has not.
func (a *Allocator) changesNothing(owner store.Owner, d plan.Decision) bool {
	if owner.Trust != assignment.Untracked || !d.Next.SameContent(owner.Record.State) {
		return false
	}
	_, gets := d.Next.Slots.Of(a.o.Pod)
	return !gets || (a.held != nil && owner.Confirms(a.mine()))
}

// tellLost reports the lost pods whose slots this pod has just put into quarantine.
func (a *Allocator) tellLost(owner store.Owner, d plan.Decision) {
	for _, f := range d.Freed {
		if f.Cause == plan.CauseLost {
			a.happened.Tell(event.PodLost{About: owner.About(), ID: f.ID, Pod: f.Pod, Quarantine: assignment.QuarantineTime(d.FenceAfter)})
		}
	}
}

// tellDamage reports what somebody else damaged and this pod has just restored.
func (a *Allocator) tellDamage(owner store.Owner, census gc.Census) {
	const most = 3 // parts and receipts; an operator who sees these looks for more
	if a.tampered(owner) {
		a.tellTampering(owner, most)
	}
	bad := census.BadReceipts[:min(most, len(census.BadReceipts))]
	receipts := make([]string, 0, len(bad))
	for _, b := range bad {
		receipts = append(receipts, fmt.Sprintf("pod %s: annotation %s: %s", b.Pod, assignment.ReceiptKey, b.Detail))
	}
	if len(receipts) > 0 {
		a.happened.Tell(event.Damaged{About: owner.About(), Reason: "ReceiptDamaged", Detail: strings.Join(receipts, "; ") + ": ignored"})
	}
}

// tampered reports whether somebody else changed or removed the assignment. An owner without any annotation of ours is new, unless this
// pod has an id.
func (a *Allocator) tampered(owner store.Owner) bool {
	return !owner.Trust.Believed() && !owner.Ancient && (owner.Trust != assignment.Absent || a.held != nil)
}

func (a *Allocator) tellTampering(owner store.Owner, most int) {
	by := owner.Tampering(a.store.Key)
	problems := owner.Record.Problems
	damaged := event.Damaged{About: owner.About()}
	switch {
	case len(problems) > 0:
		details := make([]string, 0, most)
		for _, p := range problems[:min(most, len(problems))] {
			details = append(details, p.Error())
		}
		damaged.Reason, damaged.Detail = "AssignmentDamaged", strings.Join(details, "; ")+" ("+by+"): restored from the pods' receipts"
	case owner.Undone():
		damaged.Reason, damaged.Expected = "AssignmentRolledBack", true
		damaged.Detail = "kubectl rollout undo brought an old copy of the assignment back (" + by + "): restored from the pods' receipts, holders kept their ids"
	default:
		damaged.Reason, damaged.Detail = "AssignmentChanged", by+": the assignment was restored from the pods' receipts"
	}
	a.happened.Tell(damaged)
}
