package allocator

import (
	"context"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// podStreams follows the pods that could free a slot: the owner's pods, and the pods with a receipt, which somebody may
// have relabelled. A nil *podStreams follows nothing.
type podStreams struct {
	owned, labelled *watch.PodStream
	stop            context.CancelFunc
	receipts        map[string]string // by pod, as of the last call of freed
	complete        bool              // the streams were synced at that call
}

func (a *Allocator) followPods(ctx context.Context, owner store.Owner) *podStreams {
	ctx, cancel := context.WithCancel(ctx)
	return &podStreams{
		owned:    watch.Selected(ctx, a.store, owner.Namespace, owner.Selector, a.log),
		labelled: watch.Selected(ctx, a.store, owner.Namespace, assignment.HoldersSelector(owner.String()), a.log),
		stop:     cancel,
	}
}

func (p *podStreams) synced() bool { return p.owned.Synced() && p.labelled.Synced() }

// close ends the streams and waits for them.
func (p *podStreams) close() {
	if p == nil {
		return
	}
	p.stop()
	<-p.owned.Done()
	<-p.labelled.Done()
}

// changed returns the channel of one of the two streams.
func (p *podStreams) changed(i int) <-chan struct{} {
	switch {
	case p == nil:
		return nil
	case i == 0:
		return p.owned.Changed()
	}
	return p.labelled.Changed()
}

// forget drops what was heard before the read that comes next.
func (p *podStreams) forget() {
	if p == nil {
		return
	}
	for _, s := range []*watch.PodStream{p.owned, p.labelled} {
		select {
		case <-s.Changed():
		default:
		}
	}
	p.freed()
}

// freed reports whether a pod left or changed its receipt since the last call, or may have done so before the streams
// were there.
func (p *podStreams) freed() bool {
	first := !p.complete && p.synced()
	p.complete = p.complete || first
	now := map[string]string{}
	for _, s := range []*watch.PodStream{p.owned, p.labelled} {
		for _, pod := range s.Objects() {
			now[pod.Name+"/"+string(pod.UID)] = pod.Annotations[assignment.ReceiptKey]
		}
	}
	before := p.receipts
	p.receipts = now
	for pod, receipt := range before {
		if r, there := now[pod]; !there || r != receipt {
			return true
		}
	}
	return first
}
