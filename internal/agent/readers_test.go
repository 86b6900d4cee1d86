package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

var all = allocator.Stop{All: true} //nolint:gochecknoglobals // a constant that Go cannot express

func TestAPartitionThatTheFilesShowIsNotGivenAway(t *testing.T) {
	r := &readers{}
	twelve := allocator.Stop{Partitions: placement.Of(12)}
	r.shown(dividing(placement.Between(0, 15), placement.Set{}, 0))
	if err := r.wait(t.Context(), twelve, time.Now()); !errors.Is(err, errStillShown) {
		t.Errorf("wait is %v, and the files show it", err)
	}
	r.shown(dividing(placement.Between(0, 15), placement.Of(12), 1))
	must(t, r.wait(t.Context(), twelve, time.Now()))
}

func TestReadersHaveTimeFromWhenTheIDLeftTheFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &readers{delay: time.Second}
		waits := func(want time.Duration) {
			t.Helper()
			start := time.Now()
			if err := r.wait(t.Context(), all, time.Time{}); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != want {
				t.Errorf("waited for %s, want %s", got, want)
			}
		}
		if err := r.wait(t.Context(), all, time.Time{}); !errors.Is(err, errStillShown) {
			t.Errorf("wait is %v, and an earlier process may have left an id", err)
		}
		none := held().Without(identity.StateDraining)
		r.shown(none) // of what an earlier process may have left
		waits(time.Second)
		r.shown(held())
		r.shown(none)
		time.Sleep(300 * time.Millisecond) //nolint:forbidigo // a bubble's
		r.shown(held().Without(identity.StateReleased))
		waits(700 * time.Millisecond)
		waits(0)
		r.shown(held())
		if err := r.wait(t.Context(), all, time.Time{}); !errors.Is(err, errStillShown) {
			t.Errorf("wait is %v, and the files show an id", err)
		}
		r.shown(none)
		waits(time.Second)
	})
}

func TestReadersAreNotWaitedForWhenTheCauseWentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &readers{delay: time.Hour}
		r.shown(held().Without(identity.StateDraining))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errHook)
		if err := r.wait(ctx, all, time.Time{}); !errors.Is(err, errHook) {
			t.Errorf("wait is %v", err)
		}
	})
}
