package allocator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Release gives the slot back, if there is one, and publishes the state released. Call it after Run
// or Claim returned, and only when the work under the id has stopped. byItself says that the work stopped although nobody
// told it to, which soon after the slot was taken is a failure. It blocks until the owner is
// written or ctx ends. In the latter case the slot comes free when the pod is gone.
func (a *Allocator) Release(ctx context.Context, byItself bool) error {
	r := a.receipt()
	idle := a.held == nil && (r == nil || r.Waits)
	failed := a.failures(byItself)
	a.becomeReleased()
	if idle {
		// A sibling may have written this pod in meanwhile.
		if owner, err := a.readOwner(ctx); err != nil || !named(owner, a) {
			return nil // nothing is held
		}
	}
	stop := a.follow(ctx) // the streams ended with Run
	defer stop()
	_, err := a.give(ctx, plan.Release, failed)
	if errors.Is(err, ErrPodGone) || errors.Is(err, store.ErrGone) {
		return nil // whose pod or owner is gone holds nothing
	}
	return err
}

// leave gives a slot at or above the count away after the work has stopped, and takes another one
// if there is one at once.
func (a *Allocator) leave(ctx context.Context) error {
	written, err := a.give(ctx, plan.Move, a.failures(false))
	if err != nil || written == nil {
		return err
	}
	if id, named := written.SlotOf(a.o.Pod, a.pod.UID); named && id < written.Count {
		err = a.take(ctx, *written, id, true)
	}
	if errors.Is(err, store.ErrGone) && !errors.Is(err, ErrPodGone) {
		return nil // the owner was deleted meanwhile; claim waits for it
	}
	return err
}

// give writes the two steps of giving in their order: first the receipt says that the slot is being
// given away, then the map loses the entry. When many pods give at once, one of them writes the map for all that have come to
// the second step, so each waits for its turn. failed goes onto the receipt. written is nil if the map did not have to be changed.
func (a *Allocator) give(ctx context.Context, intent plan.Intent, failed int) (written *store.Owner, err error) {
	a.held = nil
	a.shares.forget()
	gaveUp := assignment.Receipt{UID: string(a.pod.UID), Owner: a.ref.String(), GaveUp: true, Failed: failed}
	if r := a.receipt(); r.Locks() || (r != nil && r.Gives) {
		gaveUp.ID, gaveUp.Gives = r.ID, true
	}
	start := a.clock.Now()
	if err := a.writeReceipt(ctx, &gaveUp); err != nil {
		return nil, err
	}
	// This write says how fast the server is now. What was measured when all pods started does not.
	turn := giveTurn{Allocator: a, scale: a.pace.Afresh(a.clock.Since(start), a.current.Count)}
	err = a.persist(ctx, "give the slot", func() error {
		owner, out, err := turn.wait(ctx)
		if err != nil || out {
			return err
		}
		if written, _, err = a.planAndCommit(ctx, owner, intent, false); errors.Is(err, store.ErrConflict) {
			turn.extend()
		}
		return err
	})
	if errors.Is(err, store.ErrGone) && intent == plan.Move {
		return nil, nil //nolint:nilnil // an owner that is gone has no map to let go of
	}
	return written, err
}

// giveTurn waits until another pod has removed this pod's entry, or until it is this pod's turn to do so.
type giveTurn struct {
	*Allocator
	scale time.Duration
}

// wait returns the owner as it read it last. out says that the map has lost the entry, by another pod's write or by an earlier
// write of this process that got no answer.
func (t *giveTurn) wait(ctx context.Context) (owner store.Owner, out bool, err error) {
	for waited := false; ; waited = true {
		if _, err := t.listenFor(ctx, t.pace.Window(t.givers(), t.scale), t.isOut); err != nil {
			return owner, false, fmt.Errorf("idalloc: the receipt says that the slot is given, no write of the owner has taken it out yet: %w", err)
		}
		if owner, err = t.readOwner(ctx); err != nil {
			return owner, false, err
		}
		if t.isOut(owner) {
			return owner, true, nil
		}
		if waited || !t.extend() {
			return owner, false, nil
		}
	}
}

// isOut reports whether the map has lost this pod's entry.
func (t *giveTurn) isOut(owner store.Owner) bool {
	return owner.Clean() && !named(owner, t.Allocator)
}

// extend makes the next wait as long as the server has turned out to need, with a watch meanwhile. It returns false if
// that is no longer than the last wait.
func (t *giveTurn) extend() bool {
	slow := t.pace.Loaded()
	if t.givers() <= 1 || slow <= t.scale {
		return false
	}
	t.scale = slow
	t.listenToOwner()
	return true
}

// givers estimates how many pods give their slots at once: those that are asked for theirs, or, when pods are being deleted, all.
func (a *Allocator) givers() int {
	if a.owner != nil {
		if asked := len(a.latest(0).Record.State.Handover); asked > 0 {
			return asked
		}
	}
	return a.current.Count
}

// takeBackGives lets a waiter have the slot again that it gave, now that its entry is out of the map. Where nothing is tracked, the
// map that says so may be an old one. That is safe, because the pod then takes only from a W1 of its own, which comes after this.
func (c *claimer) takeBackGives(ctx context.Context, owner store.Owner) error {
	r := c.receipt()
	if r == nil || !r.Gives || !owner.Trust.Believed() || owner.Names(r.ID, c.o.Pod, c.pod.UID) {
		return nil
	}
	return c.writeReceipt(ctx, &assignment.Receipt{UID: r.UID, Owner: r.Owner, GaveUp: true, Failed: r.Failed})
}
