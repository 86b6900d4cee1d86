package partition

import (
	"context"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// Before the id is given away all work has to stop, also work on partitions that were lost and has not stopped yet.
func TestAMemberKnowsOnWhatWorkMayGoOn(t *testing.T) {
	m := &Member{changes: make(chan struct{}, 1)}
	owns := func(stopping placement.Set, partitions ...int) {
		m.publish(allocator.Shares{
			Identity: identity.Identity{State: identity.StateAssigned}, Count: 8,
			Owned: []allocator.Share{{Set: placement.Of(partitions...)}}, Stopping: stopping,
		})
	}
	says := func(want placement.Set, when string) {
		t.Helper()
		if got := m.all(); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	stopped := func(context.Context, Set) error { return nil }
	fails := func(context.Context, Set) error { return errBroken }

	owns(placement.Set{}, 1, 2, 3)
	owns(placement.Of(3), 1, 3)
	if err := m.stop(t.Context(), fails, placement.Of(2)); err == nil {
		t.Error("an error is lost")
	}
	says(placement.Of(1, 2, 3), "the work on 2, which is lost, has not stopped")
	for _, number := range []int{2, 3} {
		if err := m.stop(t.Context(), stopped, placement.Of(number)); err != nil {
			t.Error(err)
		}
	}
	says(placement.Of(1), "2 and 3 have stopped")
	if err := m.stop(t.Context(), stopped, placement.Of(1)); err != nil {
		t.Error(err)
	}
	says(placement.Of(1), "the stop of 1 was called off")
	m.publish(allocator.Shares{Identity: identity.Identity{State: identity.StateDraining}})
	if err := m.stop(t.Context(), stopped, m.all()); err != nil {
		t.Error(err)
	}
	says(placement.Set{}, "all have stopped")
}
