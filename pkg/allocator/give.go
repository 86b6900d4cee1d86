package allocator

import (
	"context"
	"errors"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Release gives the slot back, if there is one, and publishes the state released. Call it after Run
// or Claim returned, and only when the work under the id has stopped. It blocks until the owner is
// written or ctx ends; then the slot is freed when the pod is gone.
func (a *Allocator) Release(ctx context.Context) error {
	idle := a.held == nil && a.receipt() == nil
	a.held = nil
	a.show(identity.StateReleased)
	if idle {
		// A sibling may have written this pod in meanwhile.
		if owner, err := a.look(ctx); err != nil || !named(owner, a) {
			return nil //nolint:nilerr // nothing is held
		}
	}
	_, err := a.give(ctx, plan.Release)
	if errors.Is(err, ErrPodGone) || errors.Is(err, store.ErrGone) {
		return nil // whose pod or owner is gone holds nothing
	}
	a.idle()
	return err
}

// leave gives a slot at or above the count away after the work has stopped, and takes another one
// if there is one at once.
func (a *Allocator) leave(ctx context.Context) error {
	a.held = nil
	written, err := a.give(ctx, plan.Move)
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
// given away, then the map lets go of it. Of many that give at once one writes the map for all who have come to
// the second step, so each waits a moment. written is nil if the map did not have to be changed.
func (a *Allocator) give(ctx context.Context, intent plan.Intent) (written *store.Owner, err error) {
	gaveUp := assignment.Receipt{UID: string(a.pod.UID), Owner: a.ref.String(), GaveUp: true}
	if r := a.receipt(); r != nil && (!r.GaveUp || r.Gives) {
		gaveUp.ID, gaveUp.Gives = r.ID, true
	}
	if err := a.writeReceipt(ctx, &gaveUp); err != nil {
		return nil, err
	}
	if err := a.sleep(ctx, window(a.givers(), a.planTime(), a.random)); err != nil {
		return nil, err
	}
	err = a.persist(ctx, "give the slot", func() error {
		owner, err := a.look(ctx)
		if err != nil {
			return err
		}
		if owner.Clean() && !named(owner, a) {
			return nil // it is out already: another one's write, or an earlier one without an answer, did it
		}
		written, _, err = a.commit(ctx, owner, intent, false)
		return err
	})
	if errors.Is(err, store.ErrGone) && intent == plan.Move {
		return nil, nil //nolint:nilnil // an owner that is gone has no map to let go of
	}
	return written, err
}

// givers estimates how many give their slots at once: those that are asked for theirs, or any number that is being deleted.
func (a *Allocator) givers() int {
	if a.owner != nil {
		if asked := len(a.latest().Record.State.Handover); asked > 0 {
			return asked
		}
	}
	return a.current.Count
}

// takeBackGives lets a waiter have the slot again that it gave, now that its entry is out.
func (c *claimer) takeBackGives(ctx context.Context, owner store.Owner) error {
	r := c.receipt()
	if r == nil || !r.Gives || !owner.Clean() || owner.Names(r.ID, c.o.Pod, c.pod.UID) {
		return nil
	}
	return c.writeReceipt(ctx, &assignment.Receipt{UID: r.UID, Owner: r.Owner, GaveUp: true})
}
