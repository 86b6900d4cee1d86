package allocator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
)

// claim returns nil when a slot is held. It blocks until then, until ctx ends, or until an error
// that repeating does not cure.
func (a *Allocator) claim(ctx context.Context) error {
	c := &claimer{Allocator: a, retry: newBackoff(a.random), contenders: 1}
	defer func() { c.holders.close() }()
	for a.held == nil {
		if ctx.Err() != nil {
			return a.noSlot(ctx)
		}
		err := c.try(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return a.noSlot(ctx)
		case errors.Is(err, ErrPodGone):
			return err
		case errors.Is(err, store.ErrGone):
			if err := c.waitForOwner(ctx); err != nil {
				return err
			}
		case !c.temporary(err):
			return err
		default:
			if err := c.recover(ctx, err); err != nil {
				return err
			}
		}
	}
	a.setWaiting("")
	return nil
}

// noSlot is the error of a context that ended before there was a slot.
func (a *Allocator) noSlot(ctx context.Context) error {
	return fmt.Errorf("%w: %w: waited for %s", ErrNoSlot, context.Cause(ctx), a.Waiting())
}

// claimer is one claim under way.
type claimer struct {
	*Allocator
	retry *backoff
	// contenders is an estimate of how many pods want to plan now.
	contenders int
	holders    *holders
	// barred is since when a slot has been free that this pod must not have.
	barred time.Time
}

// try goes once through look, wait, look again, plan, commit. It returns nil to be called again.
func (c *claimer) try(ctx context.Context) error {
	c.holders.drain()
	owner, err := c.look(ctx)
	if err != nil {
		return err
	}
	if done, err := c.takeIfNamed(ctx, owner); done || err != nil {
		return err
	}
	c.pending(owner)
	if err := c.withdrawLost(ctx, owner); err != nil {
		return err
	}
	c.contenders = max(c.contenders, contenders(owner))
	if err := c.waitTurn(ctx, c.contenders); err != nil {
		return err
	}
	if owner, err = c.look(ctx); err != nil {
		return err
	}
	if done, err := c.takeIfNamed(ctx, owner); done || err != nil {
		return err
	}
	return c.plan(ctx, owner)
}

// look reads the owner and refuses what a newer idalloc wrote.
func (a *Allocator) look(ctx context.Context) (store.Owner, error) {
	a.busy()
	start := a.clock.Now()
	owner, err := a.store.Get(ctx, a.ref)
	if err != nil {
		return store.Owner{}, err
	}
	a.latency, a.failing = a.clock.Since(start), ""
	if a.quickest == 0 || a.latency < a.quickest {
		a.quickest = a.latency
	}
	a.quarantined.note(owner.Record.State)
	if a.owner != nil {
		a.noteStale()
	}
	return owner, owner.Unreadable()
}

// takeIfNamed takes the slot that a clean map gives to this pod, unless it gave up before: then only
// a write of its own can tell it that no late give of its own is still to come.
func (c *claimer) takeIfNamed(ctx context.Context, owner store.Owner) (done bool, err error) {
	id, named := owner.SlotOf(c.o.Pod, c.pod.UID)
	if !named || !owner.Clean() || c.gaveUp() || !c.obeyed(owner) {
		return false, nil
	}
	return true, c.takeOrWait(ctx, owner, id, false)
}

// takeOrWait takes, and after a take in vain waits a random time: others are at it too.
func (c *claimer) takeOrWait(ctx context.Context, owner store.Owner, id int, own bool) error {
	if err := c.take(ctx, owner, id, own); err != nil || c.held != nil {
		return err
	}
	c.contenders = max(2*c.contenders, 2)
	return c.sleep(ctx, c.retry.next())
}

// withdrawLost removes a receipt for a slot that a clean map gives to another pod: it would only
// keep a slot locked that nobody acts under.
func (c *claimer) withdrawLost(ctx context.Context, owner store.Owner) error {
	r := c.receipt()
	if r == nil || r.GaveUp || !owner.Clean() {
		return nil
	}
	holder, taken := owner.Record.State.Slots[r.ID]
	if !taken || owner.Names(r.ID, c.o.Pod, c.pod.UID) {
		return nil
	}
	c.log.Info("receipt withdrawn: the slot is another pod's", "id", r.ID, "holder", holder)
	return c.writeReceipt(ctx, nil)
}

// plan lists the pods, decides and commits.
func (c *claimer) plan(ctx context.Context, owner store.Owner) error {
	insist := !c.barred.IsZero() && c.clock.Since(c.barred) >= insistAfter
	written, decision, err := c.commit(ctx, owner, plan.Claim, insist)
	if err != nil {
		return err
	}
	switch {
	case decision.Barred == 0:
		c.barred = time.Time{}
	case c.barred.IsZero():
		c.barred = c.clock.Now()
	}
	if written == nil {
		c.retry.reset()
		c.contenders = max(1, decision.Waiting)
		return c.waitForSlot(ctx, owner, decision)
	}
	id, named := written.SlotOf(c.o.Pod, c.pod.UID)
	if !named {
		return nil
	}
	return c.takeOrWait(ctx, *written, id, true)
}

// commit surveys, plans and commits. written is nil when there is nothing to do.
func (a *Allocator) commit(ctx context.Context, owner store.Owner, intent plan.Intent, insist bool) (written *store.Owner, decision plan.Decision, err error) {
	a.busy()
	census, err := gc.Survey(ctx, a.store, owner)
	if err != nil {
		return nil, decision, err
	}
	for _, pod := range census.Live {
		if pod.Name == a.o.Pod && pod.UID != string(a.pod.UID) {
			return nil, decision, a.gone(store.ErrGone) // a successor with the same name is not me
		}
	}
	a.busy()
	in := plan.Input{
		Count: owner.Count, State: owner.Record.State, Clean: owner.Clean(), Untracked: owner.Untracked(), ReusesNames: owner.ReusesNames(),
		Pods: census.Live, Ended: census.Ended(), Me: a.o.Pod, Intent: intent, Insist: insist, FenceAfter: a.o.FenceAfter, Now: a.clock.Now(),
		// Who gave up needs a write of its own, but not one for every look while there is no slot for it.
		Commit: a.gaveUp() && (intent != plan.Claim || named(owner, a)),
	}
	if decision, err = a.decide(ctx, owner, in); err != nil {
		return nil, decision, err
	}
	if decision.Next == nil || pointless(owner, decision, a.o.Pod) {
		return nil, decision, nil
	}
	o, err := a.store.Commit(ctx, owner, *decision.Next)
	if err != nil {
		return nil, decision, err
	}
	a.quarantined.note(o.Record.State)
	a.log.V(1).Info("assignment written", "epoch", o.Record.State.Epoch, "given", len(decision.Given), "freed", len(decision.Freed),
		"asked", len(decision.HandOver.Asked), "clean", owner.Clean())
	a.tellDamage(ctx, owner, census)
	return &o, decision, nil
}

// decide plans, with what is known only by asking for it: whose quarantine is over, and, if a Deployment
// has no slot for this pod or a hand-over is under way, where the pod stands in a rolling update.
func (a *Allocator) decide(ctx context.Context, owner store.Owner, in plan.Input) (plan.Decision, error) {
	d := plan.Plan(in)
	if d.FenceAfter > 0 {
		in.Served = a.quarantined.served(assignment.QuarantineTime(d.FenceAfter))
		d = plan.Plan(in)
	}
	_, has := next(in.State, d).Slots.Of(in.Me)
	if owner.Kind != store.Deployment || in.Intent == plan.Release || (has && len(in.State.Handover) == 0) {
		return d, nil
	}
	own, err := a.store.RevisionOf(ctx, a.pod)
	if errors.Is(err, store.ErrGone) {
		return d, nil // no revision of the owner's any more
	}
	if err != nil {
		return d, err
	}
	in.Rollout = plan.Rollout{Current: own.Current(owner), MaxUnavailable: owner.Rollout.MaxUnavailable, Available: own.Available}
	return plan.Plan(in), nil
}

// next is the state that the decision leaves.
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

// pointless says that a write would only change the epoch of a map that nobody can make clean, for
// a pod that gets nothing from it.
func pointless(owner store.Owner, d plan.Decision, me string) bool {
	if !owner.Untrackable || !owner.Record.Sealed || !d.Next.SameContent(owner.Record.State) {
		return false
	}
	_, gets := d.Next.Slots.Of(me)
	return !gets
}

// contenders estimates how many pods want to plan: as many as there are slots to give, and in a map
// that is not clean possibly all.
func contenders(owner store.Owner) int {
	if !owner.Clean() {
		return owner.Count
	}
	return max(1, owner.Count-len(owner.Record.State.Slots))
}

// recover waits after an error that repeating may cure.
func (c *claimer) recover(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, store.ErrConflict):
		// Others plan too. More of them than was thought, so the next turn is drawn from a longer window.
		c.contenders = max(2*c.contenders, 2)
		c.log.V(1).Info("conflict: somebody else changed the owner first")
	case errors.Is(err, store.ErrAmbiguous):
		c.log.V(1).Info("no answer to a write; reading again", "reason", err.Error())
	default:
		c.unreachable(err)
	}
	if c.sleep(ctx, c.retry.next()) != nil {
		return c.noSlot(ctx)
	}
	return nil
}

// tellDamage reports what somebody else damaged and this pod has just restored.
func (a *Allocator) tellDamage(ctx context.Context, owner store.Owner, census gc.Census) {
	const most = 3 // receipts; an operator who sees these looks for more
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if !owner.Clean() && owner.Record.Present && !owner.Untrackable {
		for _, p := range owner.Record.Problems {
			a.warn(ctx, "AssignmentDamaged", p.Error()+": restored from the pods' receipts")
		}
		if len(owner.Record.Problems) == 0 {
			a.warn(ctx, "AssignmentChanged", "somebody else changed "+assignment.SealKey+" or what it seals: the assignment was restored from the pods' receipts")
		}
	}
	for _, b := range census.BadReceipts[:min(most, len(census.BadReceipts))] {
		a.warn(ctx, "ReceiptDamaged", fmt.Sprintf("pod %s: annotation %s: %s: ignored", b.Pod, assignment.ReceiptKey, b.Detail))
	}
}
