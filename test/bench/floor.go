package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// retryPause is the pause before a request is sent again.
const retryPause = 25 * time.Millisecond

// propose proposes all slots.
func propose(ctx context.Context, w *workload) error {
	s, err := store.New(w.env.ControlPlane.Config(), clock.RealClock{})
	if err != nil {
		return err
	}
	from, err := s.GetOwner(ctx, w.ref())
	if err != nil {
		return err
	}
	state := assignment.State{Slots: assignment.Slots{}}
	for id := range w.pods {
		state.Slots[id] = w.pods[id].Name
	}
	_, err = s.Propose(ctx, from, state)
	return err
}

// claimAtTheFloor is the lower bound of a safe claim: the slot was proposed before, and the pod does only what safety asks of it, with the
// clients that idalloc has: it reads the owner, writes its receipt and lists the receipts for its slot.
func claimAtTheFloor(ctx context.Context, c claimant) (id int, leave func(), err error) {
	s, err := store.New(c.config, clock.RealClock{})
	if err != nil {
		return 0, nil, err
	}
	var owner store.Owner
	err = persist(ctx, func() (err error) {
		owner, err = s.GetOwner(ctx, c.ref())
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	id, named := owner.Record.State.Slots.Of(c.pod.Name)
	if !named {
		return 0, nil, fmt.Errorf("the owner has no slot for %s", c.pod.Name)
	}
	lock := receipt.Receipt{
		UID: string(c.pod.UID), Owner: c.ref().String(), State: receipt.Locks, Share: receipt.Share{ID: id}, HandsOver: true, Write: receipt.Draw(),
	}
	since := ""
	err = persist(ctx, func() error {
		pod, err := s.SwapLock(ctx, &metav1.PartialObjectMetadata{ObjectMeta: c.pod.ObjectMeta}, "", lock)
		if errors.Is(err, request.ErrConflict) {
			return nil // no other client writes it: an earlier try, whose answer was lost, was accepted
		}
		if err == nil {
			since = pod.ResourceVersion
		}
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	var all []store.Receipt
	err = persist(ctx, func() (err error) {
		all, _, err = s.Receipts(ctx, c.ref(), store.Sought{IDs: []int{id}, Since: since})
		return err
	})
	if err == nil && (len(all) != 1 || all[0].Text != lock.Encode()) {
		err = fmt.Errorf("slot %d has %d receipts", id, len(all))
	}
	return id, nil, err
}

// persist repeats do while the server does not answer in time.
func persist(ctx context.Context, do func() error) error {
	return wait.PollUntilContextCancel(ctx, retryPause, true, func(context.Context) (bool, error) {
		err := do()
		if request.Temporary(err) {
			return false, nil
		}
		return true, err
	})
}
