package partition

import (
	"context"
	"errors"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// Before the id is given away all work has to stop, also work on partitions that were lost and has not stopped yet.
func TestAMemberKnowsOnWhatWorkMayGoOn(t *testing.T) {
	m := &Member{changes: make(chan struct{}, 1)}
	owns := func(stopping placement.Set, partitions ...int) {
		id := identity.Identity{State: identity.StateAssigned}
		id.Partitions = identity.PartitionsOf(8, []identity.Share{{Set: placement.Of(partitions...)}}, stopping, 0)
		m.publish(id)
	}
	says := func(want placement.Set, when string) {
		t.Helper()
		if got := m.all(); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	stop := func(result error, s allocator.Stop) {
		t.Helper()
		m.options.Stop = func(context.Context, Set) error { return result }
		if err := m.stop(t.Context(), s); !errors.Is(err, result) {
			t.Errorf("stop is %v, want %v", err, result)
		}
	}

	owns(placement.Set{}, 1, 2, 3)
	owns(placement.Of(3), 1, 3)
	stop(errBroken, allocator.Stop{Partitions: placement.Of(2)})
	says(placement.Of(1, 2, 3), "the work on 2, which is lost, has not stopped")
	stop(nil, allocator.Stop{Partitions: placement.Of(2)})
	stop(nil, allocator.Stop{Partitions: placement.Of(3)})
	says(placement.Of(1), "2 and 3 have stopped")
	stop(nil, allocator.Stop{Partitions: placement.Of(1)})
	says(placement.Of(1), "the stop of 1 was called off")
	m.publish(identity.Identity{State: identity.StateDraining})
	stop(nil, allocator.Stop{All: true})
	says(placement.Set{}, "all have stopped")
}

// Which of the program's functions says that work has stopped.
func TestWhomAMemberAsks(t *testing.T) {
	for name, tc := range map[string]struct {
		stop, stopped bool
		all, part     string
		fails         bool
	}{
		"Stop alone":    {stop: true, all: "1-3", part: "2"},
		"Stopped alone": {stopped: true, all: "all", fails: true},
		"both":          {stop: true, stopped: true, all: "all", part: "2"},
		"neither":       {},
	} {
		asked := ""
		m := &Member{changes: make(chan struct{}, 1), worked: placement.Between(1, 3)}
		if tc.stop {
			m.options.Stop = func(_ context.Context, set Set) error { asked = set.String(); return nil }
		}
		if tc.stopped {
			m.options.Stopped = func(context.Context) error { asked = "all"; return nil }
		}
		if err := m.stop(t.Context(), allocator.Stop{Partitions: placement.Of(2)}); (err != nil) != tc.fails || asked != tc.part {
			t.Errorf("%s: for a part it asks %q, %v", name, asked, err)
		}
		m.worked = placement.Between(1, 3)
		if err := m.stop(t.Context(), allocator.Stop{All: true, Partitions: placement.Between(1, 3)}); err != nil || asked != tc.all {
			t.Errorf("%s: for all it asks %q, %v", name, asked, err)
		}
	}
}
