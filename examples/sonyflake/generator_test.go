package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/identity"
)

// behindClock is the clock of a machine that is behind.
type behindClock struct {
	clock.RealClock

	by time.Duration
}

func (b behindClock) Now() time.Time { return b.RealClock.Now().Add(-b.by) }

// The next holder of an id begins the moment that the earlier one has stopped, on a machine whose clock is behind.
func TestTheNextHolder(t *testing.T) {
	const behind = 300 * time.Millisecond
	for name, test := range map[string]struct {
		behind, skew time.Duration
		repeats      bool
	}{
		"in the same time unit":                   {},
		"with a clock behind":                     {behind: behind, skew: behind},
		"with a clock behind, which is not known": {behind: behind, repeats: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := map[uint64]bool{}
				for _, id := range hold(t, 0, 0) {
					made[id] = true
				}
				repeats := false
				for _, id := range hold(t, test.behind, test.skew) {
					repeats = repeats || made[id]
				}
				if repeats != test.repeats {
					t.Errorf("the next holder repeats ids: %t, want %t", repeats, test.repeats)
				}
			})
		})
	}
}

// hold returns what one holder of id 1 makes for half a second by a clock that is behind.
func hold(t *testing.T, behind, skew time.Duration) (made []uint64) {
	t.Helper()
	g := &Generator{
		// The library reads the machine's clock itself. That clock is behind as well if the library counts from a later time on.
		Start: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC).Add(behind), // a bubble's time begins in 2000
		Skew:  skew,
		Clock: behindClock{by: behind},
		Log:   slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- g.Work(ctx, idalloc.Identity{State: identity.StateAssigned, ID: 1, Count: 2}) }()
	synctest.Wait()
	for len(made) < 5000 {
		id, err := g.Next()
		switch {
		case err == nil:
			made = append(made, id)
		case errors.Is(err, ErrNoID):
			time.Sleep(tick) //nolint:forbidigo // the time of the bubble
		default:
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(); !errors.Is(err, ErrNoID) {
		t.Errorf("after the work had stopped: %v, want ErrNoID", err)
	}
	return made
}

func TestAnIDThatIsNoMachineIDIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Generator{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}
		err := g.Work(t.Context(), idalloc.Identity{State: identity.StateAssigned, ID: 1 << 16, Count: 1<<16 + 1})
		if err == nil || !strings.Contains(err.Error(), "at most 65536 replicas") {
			t.Errorf("%v, want that the id is too high", err)
		}
	})
}
