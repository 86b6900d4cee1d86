package allocator

import (
	"context"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// holders follows the pods that could free a slot: the owner's pods, and the pods with a receipt, which somebody may
// have relabelled. A nil *holders follows nothing.
type holders struct {
	owned, labelled *watch.PodStream
	stop            context.CancelFunc
	receipts        map[string]string // by pod, as of the last call of freed
	complete        bool              // the streams were synced at that call
}

func (a *Allocator) followHolders(ctx context.Context, owner store.Owner) *holders {
	ctx, cancel := context.WithCancel(ctx)
	return &holders{
		owned:    watch.Selected(ctx, a.store, owner.Namespace, owner.Selector, a.log),
		labelled: watch.Selected(ctx, a.store, owner.Namespace, assignment.HoldersSelector(owner.String()), a.log),
		stop:     cancel,
	}
}

func (h *holders) synced() bool { return h.owned.Synced() && h.labelled.Synced() }

// close ends the streams and waits for them.
func (h *holders) close() {
	if h == nil {
		return
	}
	h.stop()
	<-h.owned.Done()
	<-h.labelled.Done()
}

// changed returns the channel of one of the two streams.
func (h *holders) changed(i int) <-chan struct{} {
	switch {
	case h == nil:
		return nil
	case i == 0:
		return h.owned.Changed()
	}
	return h.labelled.Changed()
}

// forget drops what was heard before the read that comes next.
func (h *holders) forget() {
	if h == nil {
		return
	}
	for _, s := range []*watch.PodStream{h.owned, h.labelled} {
		select {
		case <-s.Changed():
		default:
		}
	}
	h.freed()
}

// freed reports whether a pod left or changed its receipt since the last call, or may have done so before the streams
// were there.
func (h *holders) freed() bool {
	first := !h.complete && h.synced()
	h.complete = h.complete || first
	now := map[string]string{}
	for _, s := range []*watch.PodStream{h.owned, h.labelled} {
		for _, pod := range s.Objects() {
			now[pod.Name+"/"+string(pod.UID)] = pod.Annotations[assignment.ReceiptKey]
		}
	}
	before := h.receipts
	h.receipts = now
	for pod, receipt := range before {
		if r, there := now[pod]; !there || r != receipt {
			return true
		}
	}
	return first
}
