package allocator

import (
	"context"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/ownership"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// settleTime is how long a set that is to be taken must not have grown, unless all that the id should own is there.
const settleTime = time.Second

// sharing is what a holder does about partitions, beside what it does about its slot.
type sharing struct {
	// takeAt fires when the set growing has not grown for settleTime.
	takeAt  <-chan time.Time
	growing placement.Set
	// planAt fires when it is this process's turn to plan. planned is what the last plan that changed nothing was about.
	planAt  <-chan time.Time
	planned *outdated
	// laterAt fires when time alone has brought about that more can be planned.
	laterAt <-chan time.Time
	// stopped gets each stop that has ended.
	stopped chan *partitionStop
	// again fires when it is time to go on after an error.
	again <-chan time.Time
	// pauseOver fires when a pause is over that failures brought about.
	pauseOver <-chan time.Time
	// neighbour is the pod that this process follows, nil if there is none.
	neighbour *neighbour
}

// duties returns what this process has to do about its partitions.
func (h *holding) duties(view store.Owner) ownership.Duties {
	s := &h.shares
	return ownership.DutiesAt(h.viewOf(view, h.held.id), s.held(), h.locked(), s.yielded, s.on.Keeps)
}

// share brings the work on partitions in line with the newest view. The slot is not being given away.
func (h *holding) share(ctx context.Context, view store.Owner) error {
	if h.shares.on == nil {
		return nil
	}
	h.quarantined.see(view, h.clock.Now()) // also what was only heard of
	h.followNeighbour(ctx, view)
	h.tellWish(view)
	h.heardNeighbour() // also where only time has passed
	h.stopLost(ctx, h.duties(view).Lost)
	if h.sharing.again != nil {
		return nil
	}
	if err := h.followPause(ctx); err != nil {
		return err
	}
	duties := h.duties(view)
	if err := h.takeBackYields(ctx, duties.Back); err != nil {
		return err
	}
	h.stopRevoked(ctx, duties.Stop)
	if !duties.Yield.Empty() { // work on them has not begun
		if err := h.yield(ctx, duties.Yield); err != nil {
			return err
		}
	}
	// Work that is being stopped has to have stopped before it begins anew.
	if err := h.growInTime(ctx, duties.Take.Minus(h.shares.stopping()), view); err != nil {
		return err
	}
	h.publishShares()
	h.planInTime(h.held.view)
	return nil
}

// stopLost stops the work on partitions that the map does not give to this id any more, and on what an earlier process left.
func (h *holding) stopLost(ctx context.Context, lost placement.Set) {
	for _, stop := range h.shares.stops {
		if stop.Lost {
			lost = lost.Minus(stop.Set)
		}
	}
	if lost.Empty() {
		return
	}
	h.shares.remove(lost)
	h.beginStop(ctx, lost, true)
}

// stopRevoked stops the work on partitions that other ids are to have, and lets the rest go on.
func (h *holding) stopRevoked(ctx context.Context, revoked placement.Set) {
	for _, stop := range slices.Clone(h.shares.stops) {
		if stop.Lost {
			continue
		}
		if !stop.Set.Subset(revoked) { // some of them are to stay
			h.endStop(stop)
			continue
		}
		revoked = revoked.Minus(stop.Set)
	}
	if !revoked.Empty() {
		h.beginStop(ctx, revoked, false)
	}
	h.publishShares()
}

// beginStop has the work on the set stopped, in a goroutine that ends with its context.
func (h *holding) beginStop(ctx context.Context, set placement.Set, lost bool) {
	h.shares.number++
	ctx, cancel := context.WithCancel(ctx)
	stop := &partitionStop{PartitionStop: PartitionStop{Set: set, Number: h.shares.number, Lost: lost}, cancel: cancel}
	if lost {
		h.happened.Tell(event.PartitionsLost{ID: h.held.id, Partitions: set.String(), Stop: stop.Number})
	} else {
		h.happened.Tell(event.Revoked{ID: h.held.id, Partitions: set.String(), Stop: stop.Number})
	}
	h.shares.stops, h.shares.told = append(h.shares.stops, stop), false
	h.publishShares()
	stopped := h.sharing.stopped
	do, retry := h.shares.on.Stop, h.pace.Backoff()
	h.running.Go(func() {
		for {
			err := do(ctx, stop.PartitionStop)
			if err == nil {
				break
			}
			if ctx.Err() == nil {
				h.log.Error(err, "the work on some partitions has not stopped; they are kept and the program is asked again", "partitions", set.String())
			}
			timer := h.clock.NewTimer(retry.Next())
			select {
			case <-timer.C():
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
		select {
		case stopped <- stop:
		case <-ctx.Done():
		}
	})
}

// endStop forgets a stop.
func (h *holding) endStop(stop *partitionStop) {
	stop.cancel()
	h.shares.stops = slices.DeleteFunc(h.shares.stops, func(s *partitionStop) bool { return s == stop })
	h.shares.told = false
}

// finishStop goes on after a stop: what is lost is not locked any more, what is revoked is yielded.
func (h *holding) finishStop(ctx context.Context, stop *partitionStop) error {
	if !slices.Contains(h.shares.stops, stop) {
		return nil
	}
	h.endStop(stop)
	if stop.Lost {
		return h.lock(ctx, h.locked().Minus(stop.Set.Minus(h.duties(h.held.view).Take)))
	}
	owner, err := h.readOwner(ctx)
	if err != nil {
		h.retrySharing(err)
		h.publishShares() // the work goes on
		return nil
	}
	h.held.adopt(owner)
	duties := h.duties(owner)
	set := stop.Set.Intersect(duties.Stop)
	h.shares.remove(set)         // it is not shown as owned any more, whatever else is published
	h.stopLost(ctx, duties.Lost) // work on these does not go on
	return h.yield(ctx, set)
}

// yield says that work on the set has stopped. What is published drops it before: the next process of the pod may find no receipt, and
// go by what is published.
func (h *holding) yield(ctx context.Context, set placement.Set) error {
	h.shares.remove(set)
	h.publishShares()
	if set.Empty() {
		return nil
	}
	h.shares.yielded = h.shares.yielded.Union(set)
	h.happened.Tell(event.Yielded{ID: h.held.id, Partitions: set.String()})
	return h.lock(ctx, h.locked().Minus(set))
}

// takeBackYields withdraws yields that a read shows to be met.
func (h *holding) takeBackYields(ctx context.Context, back placement.Set) error {
	if back.Empty() {
		return nil
	}
	owner, err := h.readOwner(ctx)
	if err != nil {
		h.retrySharing(err)
		return nil
	}
	h.held.adopt(owner)
	if back = h.duties(owner).Back; back.Empty() {
		return nil
	}
	h.shares.yielded = h.shares.yielded.Minus(back)
	return h.lock(ctx, h.locked())
}

// lock writes what the receipt locks and yields from now on. A plan may come to something else after it.
func (h *holding) lock(ctx context.Context, lock placement.Set) error {
	h.sharing.planned = nil
	return h.lockPartitions(ctx, lock, h.shares.yielded, 0)
}

// growInTime takes what the map gives to the id besides, when the set has settled.
func (h *holding) growInTime(ctx context.Context, take placement.Set, view store.Owner) error {
	if take.Empty() {
		h.sharing.takeAt, h.sharing.growing = nil, placement.Set{}
		return nil
	}
	aim, _ := h.viewOf(view, h.held.id).Aim()
	if aim.Minus(h.shares.held()).Subset(take) {
		return h.grow(ctx)
	}
	if !take.Equal(h.sharing.growing) {
		h.sharing.growing, h.sharing.takeAt = take, h.clock.After(settleTime)
	}
	return nil
}

// grow takes partitions, as take takes a slot with those of its id.
func (h *holding) grow(ctx context.Context) error {
	h.sharing.takeAt, h.sharing.growing = nil, placement.Set{}
	view := h.held.view
	take := h.duties(view).Take.Minus(h.shares.stopping())
	if take.Empty() {
		return nil
	}
	before := h.locked()
	if err := h.lockPartitions(ctx, before.Union(take), h.shares.yielded, 0); err != nil { // T2
		return err
	}
	owner, err := h.readOwner(ctx) // T4
	if err != nil {
		h.retrySharing(err)
		return h.lockPartitions(ctx, before, h.shares.yielded, 0)
	}
	h.held.adopt(owner)
	mine := h.viewOf(owner, h.held.id).Mine()
	confirmed, kept := take.Intersect(mine), before.Union(take.Intersect(mine))
	epoch := int64(0)
	if kept.Subset(mine) {
		epoch = owner.Record.State.Epoch
	}
	if err := h.lockPartitions(ctx, kept, h.shares.yielded, epoch); err != nil {
		return err
	}
	h.shares.add(confirmed, owner.Record.State)
	if !confirmed.Empty() {
		h.happened.Tell(event.Grown{ID: h.held.id, Epoch: owner.Record.State.Epoch, Partitions: confirmed.String()})
	}
	h.publishShares()
	return nil
}

func (h *holding) publishShares() {
	if view := h.held.view; view.PartitionsClean() {
		h.shares.counts(view.Record.State.Partitions.Count)
	}
	if h.shares.tell(h.current) {
		h.happened.Tell(event.PartitionsPublished{Count: h.shares.count, Owned: h.shares.held().Len(), Stopping: h.shares.stopping().Intersect(h.shares.held()).Len()})
	}
}

// stopSharing ends the stops that are under way, and all alarms.
func (h *holding) stopSharing() {
	for _, stop := range h.shares.stops {
		if stop.Lost { // it is not known any more that this work goes on
			h.shares.left = h.shares.left.Union(stop.Set)
		}
	}
	for _, stop := range slices.Clone(h.shares.stops) {
		h.endStop(stop)
	}
	h.sharing.neighbour.close()
	h.sharing = sharing{stopped: h.sharing.stopped}
}

// retrySharing notes an error that keeps the partitions from going on for a while.
func (h *holding) retrySharing(err error) {
	h.unreachable(err)
	h.sharing.again = h.clock.After(h.retry.Next())
}
