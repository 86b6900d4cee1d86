package allocator

import (
	"context"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// restAfter is after how many failures in a row a process pauses by itself.
const restAfter = 3

// pause says whether this process wants no partitions for now.
type pause struct {
	// asked says that somebody wants the pause. until is when one that failures brought about is over.
	asked bool
	until time.Time
	// active is what the duties follow and the receipt says, and told what was told last.
	active, told bool
	// ended is when a pause ended last.
	ended time.Time
	// begun says that this process has looked at what the one before it left.
	begun bool
}

// beginPause pauses from the start if the process before this one was paused, or if its program failed again and again.
func (a *Allocator) beginPause(before *assignment.Receipt, from store.Owner, id int) {
	p := &a.pause
	if p.begun {
		return
	}
	p.begun = true
	switch failed := before.Failures(); {
	case !a.shares.on.RestsAfterFailures:
		p.asked = before.Locks() && before.Paused
	case failed >= restAfter && a.recent(before) && a.othersWork(from, id):
		p.until = a.began.Add(a.standBackFor(failed))
	}
	a.settlePause()
}

// recent reports whether the failures that the receipt counts may be recent. They are not if it locks a slot and has done so for long:
// then the program has worked since, or has rested for as long, and its process was killed. After such a rest the program is tried again. If it
// fails, the count goes on.
func (a *Allocator) recent(before *assignment.Receipt) bool {
	return !before.Locks() || a.clock.Since(time.UnixMilli(before.Epoch)) < provenAfter
}

// othersWork reports whether another id has a holder and is a member, so that it gets the partitions of this one.
func (a *Allocator) othersWork(owner store.Owner, id int) bool {
	if !owner.PartitionsClean() {
		return false
	}
	return slices.ContainsFunc(owner.Record.State.Partitions.Members(), func(other int) bool {
		_, taken := owner.Record.State.Slots[other]
		_, gone := a.vacancies.dead[other]
		return other != id && other < owner.Count && taken && !gone
	})
}

// ask takes in that somebody wants a pause, or none any more.
func (p *pause) ask(paused bool) { p.asked, p.until = paused, time.Time{} }

// settlePause takes in the time. left is how long there will be a pause that time ends.
func (a *Allocator) settlePause() (left time.Duration) {
	p, now := &a.pause, a.clock.Now()
	left = p.until.Sub(now)
	active := (p.asked || left > 0) && !a.shares.on.Keeps
	if p.active && !active {
		p.ended = now
	}
	p.active = active
	return left
}

// followPause begins or ends a pause when it is time to.
func (h *holding) followPause(ctx context.Context) error {
	if view := h.held.view; view.PartitionsClean() && !h.othersWork(view, h.held.id) {
		h.pause.until = time.Time{} // nobody else would work on the partitions
	}
	left := h.settlePause()
	h.sharing.pauseOver = nil
	if left > 0 {
		h.sharing.pauseOver = h.clock.After(left)
	}
	if h.pause.active != h.pause.told {
		h.pause.told = h.pause.active
		h.happened.Tell(event.Paused{ID: h.held.id, Paused: h.pause.active, Failed: h.receipt().Failures(), For: max(0, left)})
	}
	if h.receipt() == nil || h.receipt().Paused == h.pause.active {
		return nil
	}
	return h.lock(ctx, h.locked())
}

// pauseWished is nil for a process that nobody can pause.
func (h *holding) pauseWished() <-chan bool {
	if h.shares.on == nil {
		return nil
	}
	return h.shares.on.Pause
}
