package allocator

import (
	"context"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// neighbour is the holder of other partitions that this holder follows, so that somebody knows when its pod is gone: its slot and its partitions
// go to others even if no pod waits for a slot. Each holder follows one, whatever their number.
type neighbour struct {
	pod    string
	stream *watch.PodStream
	stop   context.CancelFunc
	// vain says that a plan found the pod alive.
	vain bool
}

func (n *neighbour) close() {
	if n != nil {
		n.stop()
		<-n.stream.Done()
	}
}

// neighbourOf returns the pod that the holder of me follows, empty if there is none: that of the first id before me, cyclically, of those that
// the row lists and that have an entry.
func neighbourOf(me int, owner store.Owner) string {
	row := owner.Record.State.Partitions
	if row == nil {
		return ""
	}
	listed := row.Owners.IDs()
	at, _ := slices.BinarySearch(listed, me)
	for i := range listed {
		id := listed[(at-1-i+2*len(listed))%len(listed)]
		if pod, has := owner.Record.State.Slots[id]; has && id != me {
			return pod
		}
	}
	return ""
}

// followNeighbour follows the pod that the newest view says.
func (a *Allocator) followNeighbour() {
	p, pod := &a.plans, ""
	if a.o.Divides && !a.tenure.Working.Empty() {
		pod = neighbourOf(a.tenure.Working.ID, a.view.owner)
	}
	if p.neighbour != nil && p.neighbour.pod == pod {
		return
	}
	p.neighbour.close()
	if p.neighbour = nil; pod == "" {
		return
	}
	ctx, stop := context.WithCancel(a.contact.Streams())
	p.neighbour = &neighbour{pod: pod, stream: watch.LivePod(ctx, a.o.Store, a.ref.Namespace, pod, a.log), stop: stop}
	p.neighbour.stream.Wake(a.contact.Wake())
}

// neighbourGone reports whether the neighbour's pod is gone, or counts as gone.
func (a *Allocator) neighbourGone() bool {
	n := a.plans.neighbour
	if n == nil || !n.stream.Synced() {
		return false
	}
	if _, there := n.stream.Get(n.pod); there {
		n.vain = n.vain && a.overdue(n)
		return a.overdue(n) && !n.vain
	}
	return !n.vain
}

func (a *Allocator) overdue(n *neighbour) bool {
	at := a.neighbourEnds(n)
	return !at.IsZero() && !a.clock.Now().Before(at)
}

// neighbourEnds is when the neighbour counts as gone, because it is strict and its grace period is over; the zero time if that is not known.
func (a *Allocator) neighbourEnds(n *neighbour) time.Time {
	if n == nil {
		return time.Time{}
	}
	pod, there := n.stream.Get(n.pod)
	if !there || pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	if r, _ := receipt.Of(pod, a.ref.String()); !r.Strict {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Time // Kubernetes has added the grace period to it
}
