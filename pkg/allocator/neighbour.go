package allocator

import (
	"context"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// neighbour is a holder of partitions that another process follows, so that somebody knows when it is gone. Each process follows
// one, whatever their number.
type neighbour struct {
	id       int
	pod, uid string
	stream   *watch.PodStream
	stop     context.CancelFunc
}

// close ends the stream and waits for it.
func (n *neighbour) close() {
	if n != nil {
		n.stop()
		<-n.stream.Done()
	}
}

// changed returns the channel of the stream.
func (n *neighbour) changed() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.stream.Changed()
}

// neighbourOf returns the id whose holder the holder of me follows: the first one before me, cyclically, of those ids that the row lists and that
// have a holder. Ids that are paused are among them. ok is false if there is none.
func neighbourOf(me int, owner store.Owner) (id int, ok bool) {
	row := owner.Record.State.Partitions
	if row == nil || !owner.PartitionsClean() {
		return 0, false
	}
	listed := row.Owners.IDs()
	at, _ := slices.BinarySearch(listed, me)
	for i := range listed {
		id := listed[(at-1-i+2*len(listed))%len(listed)]
		if _, has := owner.Record.State.Slots[id]; has && id != me {
			return id, true
		}
	}
	return 0, false
}

// followNeighbour follows the pod that the newest view says.
func (h *holding) followNeighbour(ctx context.Context, view store.Owner) {
	n := h.sharing.neighbour
	id, ok := neighbourOf(h.held.id, view)
	state := view.Record.State
	if n != nil && ok && n.id == id && n.pod == state.Slots[id] && n.uid == state.UIDs[id] {
		return
	}
	n.close()
	if h.sharing.neighbour = nil; !ok {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	h.sharing.neighbour = &neighbour{
		id: id, pod: state.Slots[id], uid: state.UIDs[id], stop: cancel,
		stream: watch.LivePod(ctx, h.store, h.ref.Namespace, state.Slots[id], h.log),
	}
}

// neighbourLostIn returns how long it is until the neighbour is lost. ok is false if it is lost already, or cannot be.
func (h *holding) neighbourLostIn() (in time.Duration, ok bool) {
	n := h.sharing.neighbour
	if n == nil {
		return 0, false
	}
	pod, there := n.stream.Get(n.pod)
	if !there {
		return 0, false
	}
	in, ok = h.departures.lostIn(string(pod.UID))
	return in, ok && in > 0
}

// heardNeighbour notes that the neighbour is gone or lost, or that it is there after all.
func (h *holding) heardNeighbour() {
	n := h.sharing.neighbour
	if n == nil || !n.stream.Synced() {
		return
	}
	if pod, there := n.stream.Get(n.pod); there && assignment.ShortUID(string(pod.UID)) == n.uid {
		h.departures.hear(h.held.view, h.clock.Now(), n.stream)
		if !h.departures.lost(string(pod.UID)) {
			h.vacancies.back(n.id, n.pod, n.uid)
			return
		}
	}
	h.vacancies.gone(n.id, n.pod, n.uid, h.clock.Now())
}
