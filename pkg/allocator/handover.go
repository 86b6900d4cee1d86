package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// request is a pod's request for the slot that this process holds.
type request struct {
	// by is the requester as the owner names it, empty without a request.
	by string
	// granted says that the requester lives and should have the slot.
	granted bool
	// again fires when it is time to judge a request again that was not granted, because of an error or because the work did not
	// stop.
	again <-chan time.Time
	// tries counts how often the work was asked to stop in vain.
	tries int
	// told is the requester that the log named last.
	told string
	// dropped is when a request was dropped last.
	dropped time.Time
}

const (
	// minRefusal and maxRefusal bound for how long the work goes on under its id after it did not stop
	// for a hand-over. The time doubles with each try.
	minRefusal = 30 * time.Second
	maxRefusal = 10 * time.Minute
)

// anew forgets who asks, and keeps what slows the next request down.
func (r request) anew() request { return request{tries: r.tries, told: r.told, dropped: r.dropped} }

// asked reports whether the slot is to be handed over.
func (h *holding) asked() bool { return h.request.granted && h.request.again == nil }

// judgeRequest finds out whether a pod asks for the slot, and whether a new request should be met:
// for a requester that is dead or of an older revision the work would be stopped in vain.
func (h *holding) judgeRequest(ctx context.Context, view store.Owner) {
	by := ""
	if h.o.HandsOver && view.Clean() && view.Names(h.held.id, h.o.Pod, h.pod.UID) {
		by = view.Record.State.Handover[h.held.id]
	}
	switch by {
	case "":
		h.request = request{dropped: h.request.dropped}
		return
	case h.request.by:
		return
	}
	h.request = h.request.anew()
	h.request.by = by
	h.markBusy()
	wanted, err := h.wanted(ctx, view, by)
	if err == nil && !wanted {
		// It does so only once in a while: two pods that disagree who should have the slot must not write in turns.
		if since := h.clock.Since(h.request.dropped); since < minRefusal {
			h.request.again = h.clock.After(minRefusal - since)
			return
		}
		h.request.dropped = h.clock.Now()
		h.request.again = h.clock.After(minRefusal)
		err = h.dropRequest(ctx)
	}
	if err != nil {
		h.log.V(1).Info("a request for the slot is judged again later", "requester", by, "reason", err.Error())
		h.request.again = h.clock.After(h.retry.Next())
		return
	}
	h.request.granted = wanted
	if wanted && h.request.told != by {
		h.request.told = by
		h.happened.Tell(event.Asked{ID: h.held.id, Requester: by})
	}
}

// wanted reports whether the requester lives, and this pod is not of the current revision itself, as
// after a rollback.
func (h *holding) wanted(ctx context.Context, view store.Owner, by string) (bool, error) {
	pod, err := h.store.GetPod(ctx, h.o.Namespace, by)
	if errors.Is(err, store.ErrGone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if pod.DeletionTimestamp != nil {
		return false, nil
	}
	if _, known, _ := h.owner.Latest(); !known {
		return false, nil // the owner was deleted: there is nothing to hand over
	}
	// This pod's controller may have let go of it. What checkSelf compares with stays as it is: somebody may have removed the receipt.
	self, err := h.store.GetPod(ctx, h.ref.Namespace, h.name)
	if err != nil {
		return false, h.gone(err)
	}
	own, err := h.store.RevisionOf(ctx, self)
	if errors.Is(err, store.ErrGone) {
		return true, nil
	}
	return err == nil && !own.Current(view), err
}

// dropRequest plans, which drops the requests that cannot be met.
func (h *holding) dropRequest(ctx context.Context) error {
	owner, err := h.readOwner(ctx)
	if err != nil || !h.intact(owner) {
		return err
	}
	h.held.adopt(owner)
	written, _, err := h.planAndCommit(ctx, owner, plan.Claim, false)
	if err == nil && written != nil {
		h.held.adopt(*written)
	}
	return err
}

// confirmRequest looks, after the work has stopped and before anything is given, whether the slot is
// still asked for. met is false when the work can go on.
func (h *holding) confirmRequest(ctx context.Context) (met bool, err error) {
	owner, err := h.readOwner(ctx)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		h.unreachable(err)
		h.refuseRequest() // the work goes on; it is not stopped at every try
		return false, nil
	}
	h.held.adopt(owner)
	h.request = h.request.anew() // whoever asks may have died while the work stopped
	h.judgeRequest(ctx, owner)
	return h.asked(), nil
}

// refuseRequest refuses a requester the slot for a while, because the work did not stop.
func (h *holding) refuseRequest() {
	if h.request.by == "" {
		return
	}
	h.request.again = h.clock.After(min(minRefusal<<min(h.request.tries, 8), maxRefusal))
	h.request.tries++
}
