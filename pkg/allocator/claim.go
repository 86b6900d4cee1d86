package allocator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// claim returns nil when a slot is held. It blocks until then, until ctx ends, or until an error
// that repeating does not cure.
func (a *Allocator) claim(ctx context.Context) (err error) {
	a.happened.Tell(event.Claiming{})
	start := a.clock.Now()
	defer func() { a.happened.Tell(event.Claimed{Result: claimResult(err), Took: a.clock.Since(start)}) }()
	c := &claimer{Allocator: a, retry: a.pace.Backoff(), contenders: 1}
	defer func() { c.podStreams.close() }()
	defer a.complain(ctx)()
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
	a.claimedWith = c.contenders
	return nil
}

// claimResult says how a claim with this error ended.
func claimResult(err error) event.ClaimResult {
	switch {
	case err == nil:
		return event.ClaimTaken
	case errors.Is(err, ErrNoSlot):
		return event.ClaimStopped
	}
	return event.ClaimFailed
}

// noSlot is the error of a context that ended before there was a slot.
func (a *Allocator) noSlot(ctx context.Context) error {
	return fmt.Errorf("%w: %w: waited for %s", ErrNoSlot, context.Cause(ctx), a.Waiting())
}

// claimer is one claim under way.
type claimer struct {
	*Allocator
	retry *pace.Backoff
	// contenders is an estimate of how many pods want to plan now.
	contenders int
	podStreams *podStreams
	outlook
}

// try goes once through read, wait, read again, plan, commit and take. It returns nil to be called again.
func (c *claimer) try(ctx context.Context) error {
	c.podStreams.forget()
	owner, err := c.firstRead(ctx)
	if err != nil {
		return err
	}
	if given, err := c.giveBack(ctx, owner); given || err != nil {
		return err
	}
	done, err := c.takeIfNamed(ctx, owner)
	if done || err != nil {
		return err
	}
	c.becomePending(owner.Count)
	if c.followsStrict() {
		return c.leaveStrict(ctx)
	}
	if err := errors.Join(c.withdrawLost(ctx, owner), c.takeBackGives(ctx, owner)); err != nil {
		return err
	}
	c.contenders = max(c.contenders, contenders(owner))
	if c.contenders == 1 {
		return c.planAndTake(ctx, owner)
	}
	if surplus(owner) {
		// It does so before its turn, so that the first pod that plans serves all running pods with one write.
		if err := c.showLife(ctx); err != nil {
			return err
		}
	}
	for turn, scale := 0, c.pace.Scale(owner.Count); turn < 2; turn++ {
		if owner, done, err = c.takeTurn(ctx, scale); done || err != nil {
			return err
		}
		if err := c.followRollout(ctx, owner); err != nil {
			return err
		}
		if !c.worthAPlan(owner) {
			return c.waitForSlot(ctx)
		}
		// The server is as slow as it was: too many would plan before the first one's write is heard of.
		slow := c.pace.Loaded()
		if slow <= scale {
			break
		}
		scale = slow
	}
	return c.planAndTake(ctx, owner)
}

// firstRead reads the owner. A waiter that will wait for its turn and read after it takes what its watch says instead, unless it
// has a receipt, which it may have to withdraw.
func (c *claimer) firstRead(ctx context.Context) (store.Owner, error) {
	if c.contenders > 1 && !c.unsure && c.podStreams != nil && !c.receipt().Locks() {
		if owner, known, err := c.owner.Latest(); known && err == nil {
			return owner, owner.Unreadable()
		}
	}
	return c.readOwner(ctx)
}

// takeTurn waits for this pod's turn to plan and reads the owner again. A waiter that hears of a write meanwhile needs no
// read, because a plan may start from any moment of the owner before its lists. done says that the map names this pod now.
func (c *claimer) takeTurn(ctx context.Context, scale time.Duration) (owner store.Owner, done bool, err error) {
	heard, err := c.waitTurn(ctx, scale)
	if err != nil {
		return owner, false, err
	}
	if heard != nil {
		if c.podStreams == nil && named(*heard, c.Allocator) {
			if err := c.sleep(ctx, c.pace.Queue(c.contenders)); err != nil {
				return owner, false, err
			}
		}
		if done, err = c.takeIfNamed(ctx, *heard); done || err != nil || c.podStreams != nil {
			return *heard, done, err
		}
	}
	if owner, err = c.readOwner(ctx); err != nil {
		return owner, false, err
	}
	done, err = c.takeIfNamed(ctx, owner)
	return owner, done, err
}

// readOwner reads the owner and refuses what a newer idalloc wrote.
func (a *Allocator) readOwner(ctx context.Context) (store.Owner, error) {
	owner, err := a.read(ctx)
	if err != nil {
		return store.Owner{}, err
	}
	a.quarantined.see(owner, a.clock.Now())
	a.noteForeign(owner, a.clock.Now())
	return owner, owner.Unreadable()
}

// takeIfNamed takes the slot that a clean map gives to this pod. A map whose writer the server has forgotten would not confirm that (see take),
// so it is written anew. A pod that gave a slot away before does not take: only a write of its own can tell it that no late write of that
// giving is still to come.
func (c *claimer) takeIfNamed(ctx context.Context, owner store.Owner) (done bool, err error) {
	id, named := owner.SlotOf(c.o.Pod, c.pod.UID)
	if !named || !owner.Clean() || owner.Ancient || c.writesFirst(owner) || c.followsStrict() || !owner.Obeys(c.o.FenceAfter) {
		return false, nil
	}
	return true, c.takeOrWait(ctx, owner, id, false)
}

// takeOrWait takes the slot. After a take in vain it waits a random time, because others want the slot too.
func (c *claimer) takeOrWait(ctx context.Context, owner store.Owner, id int, own bool) error {
	if err := c.take(ctx, owner, id, own); err != nil || c.held != nil {
		return err
	}
	return c.backOff(ctx)
}

// writesFirst reports whether this pod takes only from a write of its own:
//   - It gave a slot up.
//   - It is Terminating and not strict. A planner that saw the receipt of a strict process of the pod may take the pod for lost.
//   - It has no receipt, and does not know the strategy of the partitions. So it takes all that its id owns. A planner that saw a receipt,
//     which somebody has removed, may be about to give some of that to another id.
func (a *Allocator) writesFirst(owner store.Owner) bool {
	return a.gaveUp() || (a.o.FenceAfter == 0 && a.pod.DeletionTimestamp != nil) ||
		(a.shares.on != nil && !a.receipt().Locks() && unknownStrategy(owner, a.shares.strategy) != "")
}

// followsStrict reports whether this process, which is not strict, finds the lock of a strict one of its pod.
func (c *claimer) followsStrict() bool {
	r := c.receipt()
	return c.o.FenceAfter == 0 && r.Locks() && r.FenceAfter != 0
}

// leaveStrict gives up the slot that a strict process of this pod locked. A planner that has seen that lock may be about to take the
// entry of this pod out, and to give the slot away after a quarantine, which this process would not stop for. So this one takes only
// from a write of its own that comes after this.
func (c *claimer) leaveStrict(ctx context.Context) error {
	if stopped, err := c.stopEarlier(ctx); !stopped || err != nil {
		return err
	}
	return c.writeReceipt(ctx, &assignment.Receipt{UID: string(c.pod.UID), Owner: c.ref.String(), GaveUp: true, Failed: c.receipt().Failures()})
}

// withdrawLost removes a receipt for a slot that a clean map gives to another pod. The receipt would only
// lock a slot that this pod does not act under.
func (c *claimer) withdrawLost(ctx context.Context, owner store.Owner) error {
	r := c.receipt()
	if !r.Locks() || !owner.Clean() {
		return nil
	}
	holder, taken := owner.Record.State.Slots[r.ID]
	if !taken || owner.Names(r.ID, c.o.Pod, c.pod.UID) {
		return nil
	}
	c.happened.Tell(event.Withdrawn{ID: r.ID, Holder: holder})
	return c.writeReceipt(ctx, c.noYields(c.noSlotReceipt()))
}

// withdrawStranded removes a receipt, of an earlier process or from before the fence, for a slot that this pod does not get. The
// work under the identity that was published then may go on, so it has to stop first.
func (c *claimer) withdrawStranded(ctx context.Context) error {
	if c.receipt() == nil {
		return nil // the lists showed one that somebody has removed since
	}
	if stopped, err := c.stopEarlier(ctx); !stopped || err != nil {
		return err
	}
	c.happened.Tell(event.Withdrawn{ID: c.receipt().ID})
	return c.writeReceipt(ctx, c.noYields(nil))
}

// stopEarlier asks once for the end of the work that an earlier process of this pod, or this one before it was fenced, may have left. If
// that does not stop, it waits before the next time.
func (c *claimer) stopEarlier(ctx context.Context) (stopped bool, err error) {
	if err := c.o.Stopped(ctx); err != nil {
		if ctx.Err() == nil {
			c.log.Error(err, "the work has not stopped; the receipt is kept and the program asked again")
		}
		return false, c.sleep(ctx, c.retry.Next())
	}
	c.shares.left = placement.Set{}
	return true, nil
}

// planAndTake lists the pods, decides, commits, and takes the slot if the plan has one for this pod.
func (c *claimer) planAndTake(ctx context.Context, owner store.Owner) error {
	takeReserved := !c.reservedSince.IsZero() && c.reservedFor() <= 0
	written, decision, err := c.planAndCommit(ctx, owner, plan.Claim, takeReserved)
	var noRoom *assignment.TooLargeError // this pod waits for it
	switch {
	case errors.Is(err, errLateReceipt):
		return nil // what it says is known now
	case err != nil && !errors.As(err, &noRoom):
		return err
	}
	c.unsure = false
	if decision.Stranded {
		return c.withdrawStranded(ctx)
	}
	switch {
	case decision.Reserved == 0:
		c.reservedSince = time.Time{}
	case c.reservedSince.IsZero():
		c.reservedSince = c.clock.Now()
	}
	if written == nil {
		c.retry.Reset()
		c.planned, c.outcome = owner, decision
		return c.waitForSlot(ctx)
	}
	id, named := written.SlotOf(c.o.Pod, c.pod.UID)
	if !named {
		return nil
	}
	return c.takeOrWait(ctx, *written, id, true)
}

// followRollout reads where this waiter stands after the rolling update went on. By this one small read most waiters
// find out that a plan, with its lists, would still come to nothing.
func (c *claimer) followRollout(ctx context.Context, owner store.Owner) error {
	if !owner.Rolls() || c.podStreams == nil || owner.UID != c.planned.UID || owner.Rollout == c.planned.Rollout {
		return nil
	}
	rollout, err := c.readRollout(ctx, owner)
	if err == nil {
		c.rollout, c.planned.Rollout = rollout, owner.Rollout
	}
	return err
}

// mostContenders is more than the pods for which an assignment has room. A count says more when somebody mistypes it.
const mostContenders = 1 << 15

// contenders estimates how many pods want to plan: as many as there are slots to give, or as many as a Deployment is starting.
// When the map is not clean, all may want to.
func contenders(owner store.Owner) int {
	if !owner.Clean() {
		return min(owner.Count, mostContenders)
	}
	return min(max(1, owner.Count-len(owner.Record.State.Slots), starting(owner)), mostContenders)
}

// starting estimates how many pods of a Deployment start now. Its status lags: while there are old pods in a rolling update the
// controller may just have started as many as it may.
func starting(owner store.Owner) int {
	if !owner.Rolls() {
		return 0
	}
	r := owner.Rollout
	if r.Progress.Updated < r.Progress.Replicas && !r.Recreate {
		return r.MaxSurge + r.MaxUnavailable
	}
	return max(r.Progress.Replicas, owner.Count) - r.Progress.Available
}

// surplus reports whether more pods of a Deployment live than there are slots.
func surplus(owner store.Owner) bool {
	return owner.Rolls() && owner.Rollout.Progress.Replicas > owner.Count
}

// recover waits after an error that repeating may cure.
func (c *claimer) recover(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, store.ErrConflict):
		// Others plan too. More of them than was thought, so the next turn is drawn from a longer window.
		c.happened.Tell(event.Conflict{})
		if c.backOff(ctx) != nil {
			return c.noSlot(ctx)
		}
		return nil
	case errors.Is(err, store.ErrAmbiguous):
		c.log.V(1).Info("no answer to a write; reading again", "reason", err.Error())
	default:
		c.unreachable(err)
	}
	if c.sleep(ctx, c.retry.Next()) != nil {
		return c.noSlot(ctx)
	}
	return nil
}
