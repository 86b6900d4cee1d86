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

// both is an owner that gives all four partitions to the id of pod "a".
func both() store.Owner {
	owner := owning(placement.Owners{0: placement.Between(0, 3)})
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
			t.Errorf("after %d failures in a row it takes %s", failed, r.Partitions)
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
		a.withShares(&r, &assignment.Receipt{ID: 0, Epoch: 7, Failed: 3, Partitions: &locked}, both())
		if r.Partitions.Empty() != inProcess {
			t.Errorf("the work ended with its process: %t, and the next one locks %q", inProcess, r.Partitions)
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
