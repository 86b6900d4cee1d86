package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"

	appsv1 "k8s.io/api/apps/v1"
)

// floor is the lower bound of a safe claim: all slots were proposed before, and each pod does only
// what safety asks of it, with the clients that idalloc has: it reads the owner, writes its receipt
// and lists the receipts for its slot.
type floor struct{}

func (floor) name() string { return "floor" }

func (floor) deployment(n int) *appsv1.Deployment { return plain(n) }

func (floor) prepare(ctx context.Context, w *workload) error {
	s, err := store.New(w.env.ControlPlane.Config(), clock.RealClock{})
	if err != nil {
		return err
	}
	from, err := s.Get(ctx, w.ref())
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

func (floor) claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	s, err := store.New(c.config, clock.RealClock{})
	if err != nil {
		return 0, nil, err
	}
	id, err = named(ctx, s, c)
	if err != nil {
		return 0, nil, err
	}
	lock := receipt.Receipt{
		UID: string(c.pod.UID), Owner: c.ref().String(), State: receipt.Locks, Share: receipt.Share{ID: id}, HandsOver: true, Write: receipt.Draw(),
	}
	err = persist(ctx, func() error {
		_, err := s.SwapLock(ctx, &metav1.PartialObjectMetadata{ObjectMeta: c.pod.ObjectMeta}, "", lock)
		if errors.Is(err, store.ErrConflict) {
			return nil // no other client writes it: an earlier try, whose answer was lost, was accepted
		}
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	var all []store.Receipt
	err = persist(ctx, func() (err error) {
		all, err = s.Receipts(ctx, c.ref(), id)
		return err
	})
	if err == nil && (len(all) != 1 || all[0].Text != lock.Encode()) {
		err = fmt.Errorf("slot %d has %d receipts", id, len(all))
	}
	return id, nil, err
}

// named reads the owner and returns the slot that it proposes to the pod.
func named(ctx context.Context, s *store.Store, c claimant) (id int, err error) {
	var owner store.Owner
	err = persist(ctx, func() (err error) {
		owner, err = s.Get(ctx, c.ref())
		return err
	})
	if err != nil {
		return 0, err
	}
	id, ok := owner.Record.State.Slots.Of(c.pod.Name)
	if !ok {
		return 0, fmt.Errorf("the owner has no slot for %s", c.pod.Name)
	}
	return id, nil
}

// persist repeats do, after a short sleep, while the server does not answer in time.
func persist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !store.Temporary(err) {
			return err
		}
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

func (floor) verify(ctx context.Context, w *workload, all []claimed) error {
	return w.verifyMap(ctx, assignment.Key, all)
}

// retryPause is the longest sleep before a request is sent again.
const retryPause = 50 * time.Millisecond

// pause waits for a random time of up to most, or until ctx ends.
func pause(ctx context.Context, most time.Duration) error {
	timer := time.NewTimer(rand.N(most)) //nolint:gosec // no secret
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
