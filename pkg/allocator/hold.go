package allocator

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// hold keeps the slot and publishes what becomes of it. It returns nil when the slot was lost or
// given away, an error when ctx ends (the slot is kept) or the pod is gone (it is not).
func (a *Allocator) hold(ctx context.Context) error {
	h := &holding{Allocator: a, sharing: sharing{stopped: make(chan *partitionStop)}, retry: a.pace.Backoff(), drainRetry: a.pace.Backoff()}
	defer h.stopDraining()
	defer func() { h.leavers.close() }()
	defer h.stopSharing()
	defer func() { h.vacancies = vacancies{} }() // it hears of no holder any more
	h.listenInTurn()
	mine := a.held
	fenced, unguard := a.strict.guard(ctx, &a.connection, a.mine())
	defer unguard()
	h.fenced = fenced
	for {
		if done, err := h.step(ctx); done || err != nil {
			return err
		}
		if err := h.await(ctx); err != nil {
			return err
		}
		if a.held != mine {
			return nil // gone, or another slot, which needs a guard of its own
		}
	}
}

// listenInTurn starts the streams. The pod's own stream, which nothing waits for yet, starts only when most of the pods
// that claimed at the same time have their ids.
func (h *holding) listenInTurn() {
	h.listenToOwner()
	if h.self != nil || h.claimedWith <= 1 {
		h.listen()
		return
	}
	h.listenLater = h.clock.After(h.pace.Watch(h.claimedWith))
}

// selfChanged is nil as long as there is no stream of the pod.
func (h *holding) selfChanged() <-chan struct{} {
	if h.self == nil {
		return nil
	}
	return h.self.Changed()
}

type holding struct {
	*Allocator
	sharing sharing
	// listenLater fires when the pod's own stream is to be started.
	listenLater <-chan time.Time
	retry       *pace.Backoff
	// drainRetry is for a program that could not be stopped.
	drainRetry *pace.Backoff
	// drained is non-nil while the work is being stopped; it gets what Options.Stopped returned.
	drained chan error
	resume  context.CancelFunc
	// drainAgain fires when it is time to ask a program again that could not be stopped.
	drainAgain <-chan time.Time
	// fenced is closed when the deadline of strict mode passes.
	fenced <-chan struct{}
	// request is who asks for the slot.
	request request
	// recheck fires when it is time to read this pod again, after a read that failed.
	recheck <-chan time.Time
	// restore fires when it is this pod's turn to restore a map that is not clean.
	restore <-chan time.Time
	// leavers follows the pods while this pod has entries at or above the count to tidy; tidy fires
	// when some may be free.
	leavers *podStreams
	tidy    <-chan time.Time
}

// step brings the published state in line with the newest view. done means that the slot is gone.
func (h *holding) step(ctx context.Context) (done bool, err error) {
	if h.Fenced() {
		h.fence()
		return true, nil
	}
	view := h.held.view
	h.vacancies.see(view, h.clock.Now())
	h.judgeRequest(ctx, view)
	switch {
	case view.Refutes(h.mine()): // a view is never older than what this process took from (see held.after)
		// A map that nobody tracks may have been written by anybody. Then the receipt goes on locking the slot until a plan
		// has decided, because the work has not stopped yet.
		return true, h.lose(ctx, "the slot is another pod's", !view.Clean())
	case view.Count > h.held.id && !h.asked():
		h.stopDraining()
		h.becomeAssigned()
		if err := h.share(ctx, view); err != nil {
			return false, err
		}
	default:
		h.stopSharing() // all of the work stops with the id's
		h.becomeDraining()
		if h.drained == nil && h.drainAgain == nil {
			h.awaitStop(ctx)
		}
	}
	undone := h.noteRestores(view)
	if h.intact(view) {
		h.restore = nil
	} else if h.restore == nil || undone {
		h.restore = h.clock.After(h.restoreIn(view))
	}
	h.watchLeavers(ctx, view)
	return false, nil
}

// await waits for the next thing that matters and takes it in.
func (h *holding) await(ctx context.Context) error {
	h.markAtRest()
	defer h.markBusy()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.owner.Changed():
		h.hear()
		return h.watchDenied()
	case <-h.listenLater:
		h.listenLater = nil
		h.listen()
	case <-h.selfChanged():
		return errors.Join(h.watchDenied(), h.checkSelf(ctx))
	case <-h.recheck:
		return h.checkSelf(ctx)
	case <-h.fenced:
	case <-h.request.again:
		h.request = h.request.anew()
	case <-h.drainAgain:
		h.drainAgain = nil
	case err := <-h.drained:
		return h.finishDraining(ctx, err)
	case <-h.restore:
		h.restore = nil
		return h.restoreMap(ctx)
	case <-h.leavers.changed(0):
		h.heardLeavers()
	case <-h.leavers.changed(1):
		h.heardLeavers()
	case <-h.sharing.takeAt:
		return h.grow(ctx)
	case <-h.sharing.planAt:
		return h.planShares(ctx)
	case <-h.sharing.laterAt:
		h.sharing.laterAt = nil
	case <-h.sharing.again:
		h.sharing.again = nil
	case <-h.sharing.pauseOver:
	case paused := <-h.pauseWished():
		h.pause.ask(paused)
	case <-h.sharing.neighbour.changed():
		h.heardNeighbour()
	case stop := <-h.sharing.stopped:
		return h.finishStop(ctx, stop)
	case <-h.tidy:
		h.tidy = nil
		return h.tidyMap(ctx)
	}
	return nil
}

// hear takes in what the owner's stream says.
func (h *holding) hear() {
	h.noteStale()
	owner, known, err := h.owner.Latest()
	if err != nil {
		h.log.Error(err, "the owner cannot be read; the id is kept")
		return
	}
	if !known {
		return // deleted: the id is kept until the process stops
	}
	h.held.hear(owner)
}

// intact reports whether the map has this pod's entry and is as trustworthy as it can be.
func (h *holding) intact(view store.Owner) bool { return !view.Ancient && view.Confirms(h.mine()) }

// mine is what this process holds.
func (a *Allocator) mine() store.Holding {
	return store.Holding{ID: a.held.id, Pod: a.o.Pod, UID: a.pod.UID, Token: a.held.token, FenceAfter: a.o.FenceAfter}
}

// lose ends the id at once, whether or not the work has stopped. keepReceipt leaves the receipt where it is.
func (h *holding) lose(ctx context.Context, reason string, keepReceipt bool) error {
	h.happened.Tell(event.Lost{ID: h.held.id, Epoch: h.held.token, Reason: reason})
	h.becomeLost()
	if keepReceipt {
		return nil
	}
	return h.writeReceipt(ctx, h.noYields(nil))
}

// checkSelf finds out whether this pod and its receipt are still there. The stream only says when to
// look, because it lags behind this process's own writes.
func (h *holding) checkSelf(ctx context.Context) error {
	h.recheck = nil
	want := h.pod.Annotations[assignment.ReceiptKey]
	labels := labelsOf(h.pod)
	if pod, ok := h.self.Get(h.o.Pod); ok && pod.UID == h.pod.UID && pod.Annotations[assignment.ReceiptKey] == want &&
		labelsOf(pod) == labels {
		return nil
	}
	if !h.self.Synced() {
		return nil
	}
	err := h.readPod(ctx)
	switch {
	case errors.Is(err, ErrPodGone):
		return err
	case err != nil:
		h.unreachable(err)
		h.recheck = h.clock.After(h.retry.Next())
		return nil
	case h.pod.Annotations[assignment.ReceiptKey] == want && labelsOf(h.pod) == labels:
		h.seen()
		return nil
	case h.pod.Annotations[assignment.ReceiptKey] == want:
		h.seen()
		return h.writeReceipt(ctx, h.receipt()) // the labels alone: the lock was there all the time
	}
	h.happened.Tell(event.Damaged{
		About: h.held.view.About(), Reason: "ReceiptDamaged",
		Detail: "somebody else changed or removed annotation " + assignment.ReceiptKey + " of pod " + h.o.Pod + ": the id is taken again",
	})
	return h.lose(ctx, "the receipt was changed or removed", false)
}

// labelsOf returns the labels by which others find a holder.
func labelsOf(pod *metav1.PartialObjectMetadata) [2]string {
	return [2]string{pod.Labels[assignment.InstanceIDLabel], pod.Labels[assignment.OwnerLabel]}
}

// seen notes that the API server answered.
func (h *holding) seen() {
	h.retry.Reset()
	h.noteStale()
}

// awaitStop waits for the work to stop, in a goroutine that ends with its context. When the slot is not to be given away any more,
// nobody waits for the goroutine or its result.
func (h *holding) awaitStop(ctx context.Context) {
	ctx, h.resume = context.WithCancel(ctx)
	h.drained = make(chan error, 1)
	go func(done chan<- error) { done <- h.o.Stopped(ctx) }(h.drained)
}

func (h *holding) stopDraining() {
	if h.drained != nil {
		h.resume()
	}
	h.drained, h.drainAgain = nil, nil
}

// finishDraining gives the slot away if the reason to is still there.
func (h *holding) finishDraining(ctx context.Context, err error) error {
	h.stopDraining()
	if err != nil {
		h.log.Error(err, "the work has not stopped; the slot is kept and the program asked again")
		h.refuseRequest()
		if h.held.view.Count <= h.held.id {
			h.drainAgain = h.clock.After(h.drainRetry.Next())
		}
		return nil
	}
	h.hear()
	if h.held.view.Count > h.held.id {
		if met, err := h.confirmRequest(ctx); !met || err != nil {
			return err
		}
	}
	if h.Fenced() {
		return nil // the slot stays with this pod, and step says so
	}
	h.happened.Tell(event.Given{About: h.held.view.About(), ID: h.held.id, Count: h.held.view.Count, Requester: h.request.by})
	err = h.leave(ctx)
	if h.held == nil && err == nil {
		h.becomePending(h.latest(h.current.Count).Count)
	}
	return err
}
