package idalloc

import (
	"context"
	"errors"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Before the id is given away all work has to stop, also work on partitions that were lost and has not stopped yet.
func TestAnInstanceKnowsWhatWorkMayContinue(t *testing.T) {
	i := &Instance{alloc: &allocator.Allocator{}, changed: make(chan struct{}), changes: make(chan Identity, 1)}
	publish := func(id Identity) { i.change(func(Identity) Identity { return id }) }
	owns := func(stopping placement.Set, partitions ...int) {
		id := Identity{State: identity.StateAssigned}
		id.Partitions = identity.PartitionsOf(8, []identity.Share{{Set: placement.Of(partitions...)}}, stopping, 0)
		publish(id)
	}
	says := func(want placement.Set, when string) {
		t.Helper()
		if got := i.mayWorkOn(); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	stop := func(result error, s allocator.Stop) {
		t.Helper()
		i.options.Stop = func(context.Context, Stopping) error { return result }
		if err := i.ask(t.Context(), s); !errors.Is(err, result) {
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
	publish(Identity{State: identity.StateDraining})
	stop(nil, allocator.Stop{All: true})
	says(placement.Set{}, "all have stopped")
}

// The program hears of everything that it may be working on, even if the loop knows of less.
func TestWhatAProgramIsAskedToStop(t *testing.T) {
	var asked Stopping
	i := &Instance{worked: placement.Between(1, 3)}
	i.options.Stop = func(_ context.Context, s Stopping) error { asked = s; return nil }
	if err := i.ask(t.Context(), allocator.Stop{Partitions: placement.Of(2)}); err != nil || asked.All || asked.Partitions.String() != "2" {
		t.Errorf("for a part: %+v, %v", asked, err)
	}
	if err := i.ask(t.Context(), allocator.Stop{All: true}); err != nil || !asked.All || asked.Partitions.String() != "1,3" {
		t.Errorf("for all: %+v, %v", asked, err)
	}
	i.options.Stop = nil
	if err := i.ask(t.Context(), allocator.Stop{All: true}); err != nil {
		t.Error(err)
	}
}
