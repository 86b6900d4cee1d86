package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// take makes slot id this process's own, if nothing came in between. from is a moment of the owner that names
// this pod: a clean one that was read, or one that this process wrote (own). It is no error if the pod does not get the slot:
// held says whether it did.
//
//  1. from names me.
//  2. My receipt locks the slot: every planner that reads the owner from here on lists pods later
//     and sees it.
//  3. If my own write did not make the map clean, nothing is tracked, and two pods may each have
//     written a map that names themselves: look for another receipt.
//  4. The owner still names me, in a map that all know to be clean, so no planner that did not see my receipt changed it in
//     between, or is about to.
func (a *Allocator) take(ctx context.Context, from store.Owner, id int, own bool) error {
	a.markBusy()
	epoch, before := from.Record.State.Epoch, a.receipt()
	receipt := assignment.Receipt{
		UID: string(a.pod.UID), Owner: a.ref.String(), ID: id, Epoch: epoch, HandsOver: a.o.HandsOver, FenceAfter: a.o.FenceAfter,
		Failed: before.Failures(),
	}
	a.withShares(&receipt, before, from)
	switch err := a.firstReceipt(ctx, &receipt); {
	case errors.Is(err, errLateReceipt):
		return nil // what it gives or yields is known now
	case err != nil:
		return err
	}
	earlier := before.Locks() && before.ID == id
	untracked := own && !from.Clean()
	if untracked {
		if contested, err := a.contested(ctx, from, id); err != nil || contested {
			return errors.Join(err, a.withdrawUnless(ctx, earlier, "another pod has a receipt for this slot"))
		}
	}
	var now store.Owner
	var sent time.Duration
	err := a.persist(ctx, "read the owner again", func() (err error) {
		sent = a.strict.boot.BootTime()
		now, err = a.readOwner(ctx)
		return err
	})
	if errors.Is(err, store.ErrGone) {
		return err // no owner, no other holder: the lock stays for the one that comes back under its name
	}
	if err != nil {
		return errors.Join(err, a.withdrawUnless(ctx, earlier, "the owner could not be read again"))
	}
	// A map that only this process knows to be clean is no more to others than a foreign one: a plan that did not see the receipt may be about
	// to drop the entry.
	steady := now.Clean() != untracked && (now.Clean() || now.Record.State.Epoch == epoch) && !now.Ancient
	mine := store.Holding{ID: id, Pod: a.o.Pod, UID: a.pod.UID, Token: epoch, FenceAfter: a.o.FenceAfter}
	if !steady || now.UID != from.UID || !now.Confirms(mine) {
		return a.withdrawUnless(ctx, earlier, "the owner changed meanwhile")
	}
	confirmed, kept := a.confirmShares(now, id, before)
	if all := receipt.Partitions; now.Record.State.Epoch > epoch || (all != nil && !kept.Equal(*all)) {
		// The next epoch exceeds every receipt's, so that no later token is below this one.
		receipt.Epoch = now.Record.State.Epoch
		if all != nil {
			receipt.Partitions = &kept
		}
		if err := a.writeReceipt(ctx, &receipt); err != nil {
			return err
		}
	}
	if !a.strict.begin(sent) {
		return a.withdraw(ctx, "the API server took too long to confirm it")
	}
	a.tellContact(sent)
	a.held = &held{id: id, token: now.Record.State.Epoch, since: a.clock.Now(), view: now, after: now.ResourceVersion}
	a.shares.left = placement.Set{} // it is locked
	a.shares.add(confirmed, now.Record.State)
	a.happened.Tell(event.Taken{ID: id, Epoch: a.held.token, Partitions: confirmed.String()})
	return nil
}

// contested reports whether another live pod has a receipt for the slot.
func (a *Allocator) contested(ctx context.Context, owner store.Owner, id int) (bool, error) {
	var census gc.Census
	err := a.persist(ctx, "look for other receipts", func() (err error) {
		a.markBusy()
		census, err = gc.Survey(ctx, a.store, owner)
		return err
	})
	if err != nil {
		return false, err
	}
	for _, pod := range census.Live {
		if r := pod.Receipt; pod.Name != a.o.Pod && r.Locks() && r.ID == id {
			return true, nil
		}
	}
	return false, nil
}

// withdrawUnless ends a take in vain. If an earlier process of this pod locked the slot, its program may still act. That lock goes only when
// that work has stopped, or when a clean map gives the slot to another pod: the next try looks.
func (a *Allocator) withdrawUnless(ctx context.Context, earlier bool, reason string) error {
	if earlier {
		a.happened.Tell(event.NotTaken{Reason: reason})
		return nil
	}
	return a.withdraw(ctx, reason)
}

// withdraw removes a receipt under which nobody acts, not even a program that reads the identity that an earlier
// process of this pod published.
func (a *Allocator) withdraw(ctx context.Context, reason string) error {
	a.becomePending(a.current.Count)
	a.happened.Tell(event.NotTaken{Reason: reason})
	return a.writeReceipt(ctx, a.noYields(a.noSlotReceipt()))
}
