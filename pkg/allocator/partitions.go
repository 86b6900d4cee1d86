package allocator

import "time"

const (
	// joinTime is how long a holder waits before it joins those that divide the partitions, and firstJoinTime if no holder does yet: one write
	// serves all that start together.
	joinTime, firstJoinTime = time.Second, 3 * time.Second
	// idleTime is how long a holder waits for another pod to plan that it owns a partition without work.
	idleTime = 5 * time.Second
)

// joins has the own id if it has been held for long enough to join beside other members (strategy primary).
func (a *Allocator) joins() map[int]bool {
	at := a.state.Working
	return map[int]bool{at.ID: !at.Empty() && a.clock.Since(a.work.Since()) >= a.view.owner.Wish.GiveBackAfter}
}

// joinIn is how much later a holder plans that is not among those that divide the partitions yet, or whose partitions are idle.
func (a *Allocator) joinIn() time.Duration {
	row := a.view.owner.Record.State.Row
	switch {
	case !a.o.Divides || a.work.Pauses() || !a.view.owner.Wish.HasCount && row == nil:
		return 0
	case row == nil || len(row.Owners) == 0:
		return firstJoinTime
	}
	if _, listed := row.Owners[a.state.Lock.Share.ID]; !listed {
		return joinTime
	}
	return 0
}
