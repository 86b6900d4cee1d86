package peers

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// neighbour is the one other holder of partitions that a holder follows, so that one pod knows when that holder is gone: its slot and its partitions go to
// others even if no pod waits for a slot. Each holder follows one, however many there are.
type neighbour struct {
	pod    string
	stream *watch.PodStream
	stop   context.CancelFunc
	// vain: a plan found the pod alive.
	vain bool
	// since is when this holder began to follow it. turns is when it may follow the next one, zero if none is waiting.
	since, turns time.Time
}

// settles is the least time for which a holder follows one neighbour. A switch takes up to three requests, and a writer may change the map, and with it the
// neighbour, many times a minute.
const settles = 2 * time.Second

func (n *neighbour) close() {
	if n.stop != nil {
		n.stop()
		<-n.stream.Done()
	}
	*n = neighbour{since: n.since}
}

// neighbourOf returns the pod that the holder of me follows, empty if there is none. Of the ids that the row lists and that have an entry, it is the pod of
// the first one before me, cyclically.
func neighbourOf(me int, owner store.Owner) string {
	row := owner.Record.State.Row
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

// FollowNeighbour follows the pod that the holder of me should follow by this version of the owner, or none if me is receipt.NoID. If it switched less than
// settles ago, it keeps the former one until NeighbourTurns.
func (p *Peers) FollowNeighbour(ctx context.Context, me int, owner store.Owner, now time.Time, log logr.Logger) {
	n, pod := &p.neighbour, ""
	if me != receipt.NoID {
		pod = neighbourOf(me, owner)
	}
	if n.turns = (time.Time{}); n.pod == pod {
		return
	}
	if at := n.since.Add(settles); pod != "" && now.Before(at) {
		n.turns = at
		return
	}
	if n.close(); pod == "" {
		return
	}
	n.since = now
	ctx, n.stop = context.WithCancel(ctx)
	n.pod, n.stream = pod, watch.LivePod(ctx, p.store, owner.Namespace, pod, log)
	n.stream.Wake(p.wake)
}

// NeighbourTurns returns when to call FollowNeighbour again, zero if that is not due.
func (p *Peers) NeighbourTurns() time.Time { return p.neighbour.turns }

// NeighbourLives records that a plan has found the neighbour alive.
func (p *Peers) NeighbourLives() { p.neighbour.vain = true }

// NeighbourIdle returns the neighbour's pod if it locks nothing, and an empty name if it locks something or that is unknown.
func (p *Peers) NeighbourIdle(owner kinds.Ref) string {
	n := &p.neighbour
	if n.stream == nil || !n.stream.Synced() {
		return ""
	}
	if pod, there := n.stream.Get(n.pod); there {
		if r, _ := receipt.Of(pod, owner.String()); r.Locked() { // an unreadable receipt locks
			return ""
		}
	}
	return n.pod
}

// NeighbourGone reports whether the neighbour's pod is gone, or counts as gone now, and no plan has found it alive since.
func (p *Peers) NeighbourGone(owner kinds.Ref, now time.Time) bool {
	n := &p.neighbour
	if n.stream == nil || !n.stream.Synced() {
		return false
	}
	if _, there := n.stream.Get(n.pod); there {
		ends := p.NeighbourEnds(owner)
		overdue := !ends.IsZero() && !now.Before(ends)
		n.vain = n.vain && overdue
		return overdue && !n.vain
	}
	return !n.vain
}

// NeighbourEnds returns when the neighbour counts as gone, because it is strict and its grace period is over; the zero time if that is unknown.
func (p *Peers) NeighbourEnds(owner kinds.Ref) time.Time {
	n := &p.neighbour
	if n.stream == nil {
		return time.Time{}
	}
	pod, there := n.stream.Get(n.pod)
	if !there || pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	if r, _ := receipt.Of(pod, owner.String()); !r.Strict {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Time // Kubernetes has added the grace period to it
}
