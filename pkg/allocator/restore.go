package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// noteRestores reports whether a restore was undone, and says so when that happens again and again.
func (h *holding) noteRestores(view store.Owner) (undone bool) {
	const again = 4 // times in a row
	undone = h.damping.note(h.owner.Restores(), view.Trust.Believed(), h.clock.Now())
	if undone && h.damping.times == again {
		h.happened.Tell(event.Undone{Writer: view.Tampering(h.store.Key), Longest: maxDamping})
	}
	return undone
}

// restoreIn returns for how long this pod leaves a map alone that is not clean, so that only a few of the holders write.
func (h *holding) restoreIn(view store.Owner) time.Duration {
	damped := h.damping.wait()
	if damped == 0 {
		return h.pace.Window(view.Count, h.pace.Calm()) + h.retry.Current() // one in vain costs little
	}
	in := damped + h.pace.Window(max(view.Count, 2), max(h.pace.Calm(), damped/4)) + h.retry.Current()
	if left, ok := h.strict.left(); ok {
		// A read of a map that is not clean is no contact, but a restore of its own is. So each holder makes one while there is time.
		early := h.pace.Part(h.o.FenceAfter / contacts)
		in = min(in, max(h.retry.Current(), left-early))
	}
	return in
}

// restoreMap repairs a map that somebody else changed. Nobody's work is touched by it.
func (h *holding) restoreMap(ctx context.Context) error {
	owner, err := h.readOwner(ctx)
	if err == nil && h.intact(owner) {
		h.held.adopt(owner)
		h.retry.Reset()
		return nil
	}
	var written *store.Owner
	sent := h.strict.boot.BootTime()
	if err == nil {
		h.held.adopt(owner)
		written, _, err = h.planAndCommit(ctx, owner, plan.Claim, false)
	}
	switch {
	case err == nil && written != nil:
		h.happened.Tell(event.Restored{Epoch: written.Record.State.Epoch})
		h.held.adopt(*written)
		if h.damp(h.held.view); !h.intact(h.held.view) {
			h.retry.Next()
			return nil
		}
		h.retry.Reset()
		h.strict.renew(sent) // the answer shows the owner as a read at that moment would
		h.tellContact(sent)
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrPodGone):
		return err
	case errors.Is(err, store.ErrNewer), errors.Is(err, store.ErrOtherKey):
		h.log.Error(err, "the assignment is left as it is; the id is kept")
		h.retry.Most()
	case err != nil && !store.Temporary(err):
		h.log.Error(err, "the assignment cannot be restored; the id is kept")
		h.retry.Most()
	}
	h.retry.Next()
	return nil
}
