package executor

import (
	"fmt"
	"testing"
	"time"

	"github.com/idalloc/idalloc/controller/internal/heart"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
)

// A tool that undoes each write of map and row is not answered each time at once.
func TestAMapThatIsUndoneIsWrittenAgainLaterEachTime(t *testing.T) {
	row := func(count int) *assignment.Row {
		return &assignment.Row{Count: count, Strategy: placement.DefaultName, Owners: placement.Owners{0: placement.Between(0, count-1)}}
	}
	for _, undone := range []error{nil, fmt.Errorf("plan: %w", store.ErrNotKept), fmt.Errorf("plan: %w", store.ErrRefused)} {
		now, writes := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0
		end := now.Add(time.Minute)
		var k temper
		for now.Before(end) {
			if k.damped(now) <= 0 {
				k.proposed(decided(assignment.State{Slots: assignment.Slots{0: "a"}, Row: row(8)}), now, undone)
				writes++
			}
			now = now.Add(50 * time.Millisecond)
		}
		if writes < 5 || writes > 20 {
			t.Errorf("%v: %d writes in a minute", undone, writes)
		}
		if k.proposed(decided(assignment.State{Slots: assignment.Slots{0: "b"}, Row: row(8)}), now, undone); k.damped(now) > 0 {
			t.Errorf("%v: another map waits for %s", undone, k.damped(now))
		}
		if k.proposed(decided(assignment.State{Slots: assignment.Slots{0: "b"}, Row: row(4)}), now, undone); k.damped(now) > 0 {
			t.Errorf("%v: another row waits for %s", undone, k.damped(now))
		}
	}
}

// Another write came first. The owner is read, and the plan is written at once.
func TestAConflictIsNoReasonToWriteTheMapLater(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var k temper
	for range 3 {
		k.proposed(decided(assignment.State{Slots: assignment.Slots{0: "a"}}), now, store.ErrConflict)
	}
	if k.damped(now) > 0 {
		t.Errorf("the map waits for %s", k.damped(now))
	}
}

func decided(next assignment.State) (d heart.Decision) {
	d.Plan.Next = &next
	return d
}

// The pods of a broken revision have new ids all the time, however many they are. When all fail once, because something else was away for a moment, they
// are not to wait for long.
func TestPodsThatFailShareWritesOfTheMap(t *testing.T) {
	now, writes := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), []time.Duration{}
	var k temper
	for after := time.Duration(0); after < time.Minute; after += 50 * time.Millisecond {
		if k.failing.Left(now.Add(after)) > 0 {
			continue
		}
		d := decided(assignment.State{Slots: assignment.Slots{len(writes): "a"}})
		d.Failing = true
		k.proposed(d, now.Add(after), nil)
		if writes = append(writes, after); k.damped(now.Add(after)) > 0 {
			t.Errorf("what concerns other pods waits for %s", k.damped(now.Add(after)))
		}
	}
	if len(writes) < 5 || len(writes) > 20 || writes[4] > 2*time.Second {
		t.Errorf("writes in a minute: %s", writes)
	}
	now = now.Add(time.Hour)
	if k.proposed(decided(assignment.State{}), now, nil); k.failing.Left(now) > 0 {
		t.Error("a pod that fails for once waits, because another one got an id")
	}
}
