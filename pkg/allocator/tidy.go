package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// tidyDelay is how long a tidying waits after the end of a pod for the end of others, so that one write serves all.
const tidyDelay = 500 * time.Millisecond

// watchLeavers follows the pods as long as the map has entries at or above the count. After a
// scale-down nobody waits for a slot, so nobody would plan and the dead pods' entries would stay.
// One pod is enough for this: the one that holds slot 0.
func (h *holding) watchLeavers(ctx context.Context, view store.Owner) {
	if h.held.id != 0 || !h.intact(view) || !entriesAbove(view) {
		h.leavers.close()
		h.leavers, h.tidy = nil, nil
		return
	}
	if h.leavers == nil {
		h.leavers = h.followPods(ctx, view)
	}
}

func entriesAbove(owner store.Owner) bool {
	for id := range owner.Record.State.Slots {
		if id >= owner.Count {
			return true
		}
	}
	return false
}

func (h *holding) heardLeavers() {
	if !h.leavers.synced() {
		return
	}
	// The first time is for pods that ended before the watches were there.
	first := h.leavers.receipts == nil
	if (h.leavers.freed() || first) && h.tidy == nil {
		h.tidy = h.clock.After(tidyDelay)
	}
}

// tidyMap drops the entries of dead pods.
func (h *holding) tidyMap(ctx context.Context) error {
	h.leavers.forget()
	owner, err := h.readOwner(ctx)
	if err != nil || !h.intact(owner) {
		return h.tidyLater(ctx, err)
	}
	h.held.adopt(owner)
	written, _, err := h.planAndCommit(ctx, owner, plan.Claim, false)
	if err != nil {
		return h.tidyLater(ctx, err)
	}
	if written != nil {
		h.held.adopt(*written)
	}
	h.retry.Reset()
	return nil
}

// tidyLater tries again after an error. The entries harm nobody meanwhile.
func (h *holding) tidyLater(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, ErrPodGone) {
		return err
	}
	if err != nil {
		h.log.V(1).Info("entries at or above the count are left for later", "reason", err.Error())
		h.tidy = h.clock.After(h.retry.Next())
	}
	return nil
}
