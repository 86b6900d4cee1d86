package allocator

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// failing returns a process that works on partitions, that rests after failures, and whose pod's program failed n times in a row.
func failing(n int) (*Allocator, func(time.Duration)) {
	a, clk := withFailures(n)
	a.o.Pod = "a"
	a.shares = shares{on: &Partitions{Publish: func(Shares) {}, RestsAfterFailures: true, InProcess: true}}
	return a, clk.Step
}

// both is an owner that gives all four partitions to the id of pod "a", and has another member.
func both() store.Owner {
	owner := owning(placement.Owners{0: placement.Between(0, 3), 1: {}})
	owner.Record.State.UIDs = assignment.Slots{0: assignment.ShortUID("u")}
	return owner
}

func TestAProgramThatFailsAgainAndAgainRests(t *testing.T) {
	for failed, rests := range map[int]bool{0: false, 2: false, 3: true, 4: true} {
		a, step := failing(failed)
		r := assignment.Receipt{ID: 0}
		a.withShares(&r, a.receipt(), both())
		if r.Paused != rests {
			t.Errorf("after %d failures in a row it is paused: %t", failed, r.Paused)
		}
		if rests != r.Partitions.Empty() {
			t.Errorf("after %d failures in a row it takes %q", failed, r.Partitions)
		}
		step(maxStandBack * 2)
		if a.settlePause(); a.pause.active {
			t.Errorf("after %d failures in a row it rests for ever", failed)
		}
	}
}

// The process that was killed while it worked locked partitions. Its work ended with it, so nothing has to be stopped.
func TestAProcessThatRestsLocksNothingOfTheOneBefore(t *testing.T) {
	for _, inProcess := range []bool{true, false} {
		a, _ := failing(3)
		a.shares.on.InProcess = inProcess
		locked := placement.Between(0, 1)
		r := assignment.Receipt{ID: 0}
		a.withShares(&r, &assignment.Receipt{ID: 0, Epoch: a.clock.Now().UnixMilli(), Failed: 3, Partitions: &locked}, both())
		if r.Partitions.Empty() != inProcess {
			t.Errorf("the work ended with its process: %t, and the next one locks %q", inProcess, r.Partitions)
		}
	}
}

// Somebody has to work on the partitions meanwhile.
func TestAProgramRestsOnlyWhileAnotherMemberHasAHolder(t *testing.T) {
	for name, alter := range map[string]func(*store.Owner){
		"no other member":            func(o *store.Owner) { delete(o.Record.State.Partitions.Owners, 1) },
		"the other member is paused": func(o *store.Owner) { o.Record.State.Partitions.Paused = placement.Of(1) },
		"nobody has the other id":    func(o *store.Owner) { delete(o.Record.State.Slots, 1) },
		"the other id is to go":      func(o *store.Owner) { o.Count = 1 },
	} {
		a, _ := failing(3)
		owner, r := both(), assignment.Receipt{ID: 0}
		alter(&owner)
		if a.withShares(&r, a.receipt(), owner); r.Paused {
			t.Errorf("%s, and it rests", name)
		}
		a, _ = failing(3)
		a.withShares(&r, a.receipt(), both())
		h := &holding{Allocator: a}
		if a.held = (&held{view: owner}); h.followPause(t.Context()) != nil || a.pause.active {
			t.Errorf("%s since it began to rest, and it goes on resting", name)
		}
	}
}

// The receipt that counts them has locked its slot for long, so the program has worked since.
func TestAProgramDoesNotRestForFailuresOfLongAgo(t *testing.T) {
	for ago, rests := range map[time.Duration]bool{time.Minute: true, provenAfter: false} {
		a, _ := failing(0)
		r := assignment.Receipt{ID: 0}
		before := &assignment.Receipt{ID: 0, Failed: 3, Epoch: a.clock.Now().Add(-ago).UnixMilli(), Partitions: &placement.Set{}}
		if a.withShares(&r, before, both()); r.Paused != rests {
			t.Errorf("it was killed %s after it took: it rests: %t", ago, r.Paused)
		}
	}
}

// A set that grows raises the epoch, so the next process would take the failures for recent ones.
func TestAProgramDoesNotRestForFailuresFromBeforeItsSetGrew(t *testing.T) {
	for worked, rests := range map[time.Duration]bool{time.Minute: true, provenAfter: false} {
		a, step := failing(3)
		a.held = &held{since: a.clock.Now()}
		step(worked)
		before := a.locking(placement.Between(0, 3), placement.Set{}, a.clock.Now().UnixMilli())
		before.Waits = false // it locks the slot
		next, _ := failing(0)
		next.clock, next.began = a.clock, a.clock.Now()
		r := assignment.Receipt{ID: 0}
		if next.withShares(&r, &before, both()); r.Paused != rests {
			t.Errorf("the set grew after the program had worked for %s, and then its process was killed: the next one rests: %t", worked, r.Paused)
		}
	}
}

func TestAPauseThatSomebodyAskedForOutlivesTheProcess(t *testing.T) {
	none := placement.Set{}
	for name, before := range map[string]*assignment.Receipt{
		"paused": {ID: 0, Epoch: 7, Partitions: &none, Paused: true}, "not paused": {ID: 0, Epoch: 7, Partitions: &none}, "no process before": nil,
	} {
		a, step := failing(0)
		a.shares.on.RestsAfterFailures = false
		r := assignment.Receipt{ID: 0}
		a.withShares(&r, before, both())
		step(time.Hour)
		if a.settlePause(); a.pause.active != (name == "paused") || r.Paused != a.pause.active {
			t.Errorf("%s: the next process is paused: %t", name, r.Paused)
		}
	}
}

func TestWhoKeepsItsPartitionsIsNeverPaused(t *testing.T) {
	a, _ := failing(5)
	a.shares.on.Keeps = true
	a.pause.ask(true)
	r := assignment.Receipt{ID: 0}
	a.withShares(&r, a.receipt(), both())
	if r.Paused || !r.Partitions.Equal(placement.Between(0, 3)) {
		t.Errorf("it is paused: %t, and takes %s", r.Paused, r.Partitions)
	}
}

// Nothing proves a program while it rests.
func TestARestIsNoTimeInWhichAProgramWorks(t *testing.T) {
	a, step := failing(3)
	a.held = &held{since: a.clock.Now()}
	a.pause.active, a.pause.until = true, a.clock.Now().Add(time.Hour)
	step(time.Hour)
	if got := a.failures(false); got != 3 {
		t.Errorf("%d failures while it rests", got)
	}
	a.settlePause()
	step(time.Second)
	if got := a.failures(true); got != 4 {
		t.Errorf("%d failures when it failed a second after its rest", got)
	}
	step(provenAfter)
	if got := a.failures(true); got != 0 {
		t.Errorf("%d failures when it has worked for long", got)
	}
}
