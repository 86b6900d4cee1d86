package main

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/snowflake"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc"
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
		"in the same millisecond":                 {},
		"with a clock behind":                     {behind: behind, skew: behind},
		"with a clock behind, which is not known": {behind: behind, repeats: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				early := hold(t, 0, 0)
				late := hold(t, test.behind, test.skew)
				made := map[snowflake.ID]bool{}
				for _, id := range early {
					made[id] = true
				}
				repeats := false
				for _, id := range late {
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
func hold(t *testing.T, behind, skew time.Duration) (made []snowflake.ID) {
	t.Helper()
	// The library reads the machine's clock itself. That clock is behind as well if the library counts from a later time on.
	epochBefore := snowflake.Epoch
	snowflake.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC).Add(behind).UnixMilli() // a bubble's time begins in 2000
	defer func() { snowflake.Epoch = epochBefore }()
	g := &Generator{Skew: skew, Clock: behindClock{by: behind}, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- g.Work(ctx, idalloc.Identity{ID: 1, Count: 2}) }()
	synctest.Wait()
	for len(made) < 5000 {
		if id, err := g.Next(); err == nil {
			made = append(made, id)
		}
		if len(made)%10 == 0 && len(made) < 5000 { // the last millisecond is not over when the work ends
			time.Sleep(tick) //nolint:forbidigo // the time of the bubble
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(); err == nil {
		t.Error("an id was made after the work had stopped")
	}
	return made
}

// setClock is a clock that people set, while the other clock of its machine runs on.
type setClock struct {
	clock.RealClock

	by atomic.Int64
}

func (s *setClock) Now() time.Time { return s.RealClock.Now().Add(time.Duration(s.by.Load())) }

// The next holder waits by its clock, so no id may be ahead of that.
func TestNoIDIsAheadOfAClockThatWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine := &setClock{}
		g := &Generator{Clock: machine, Log: slog.New(slog.DiscardHandler)}
		go g.Work(t.Context(), idalloc.Identity{ID: 1, Count: 2}) //nolint:errcheck // it ends with the test
		synctest.Wait()
		last := snowflake.ID(math.MinInt64) // a bubble's time is before the library's
		for second, c := range []struct {
			set   time.Duration
			makes bool
		}{
			{0, true},
			{-2500 * time.Millisecond, false}, {0, false}, {0, false}, {0, true}, // until it has caught up
			{time.Hour, true},
			{-time.Hour, true}, // to where it was
		} {
			machine.by.Add(int64(c.set))
			time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
			id, err := g.Next()
			if (err == nil) != c.makes {
				t.Errorf("second %d: %d, %v; want one: %t", second, id, err, c.makes)
			}
			if err != nil {
				continue
			}
			if id <= last {
				t.Errorf("second %d: %d was made after %d", second, id, last)
			}
			last = id
		}
	})
}

// In strict mode the context ends by the clock, and Work hears of it later.
func TestNothingIsMadeOnceTheContextHasEnded(t *testing.T) {
	node, err := snowflake.NewNode(1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	g := &Generator{}
	g.use(node, ctx.Err)
	if _, err := g.Next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if id, err := g.Next(); err == nil {
		t.Errorf("%d was made", id)
	}
}

func TestAnIDThatIsNoNodeNumberIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Generator{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}
		if err := g.Work(t.Context(), idalloc.Identity{ID: 1024, Count: 1025}); err == nil || !strings.Contains(err.Error(), "at most 1024 replicas") {
			t.Errorf("%v, want how many replicas there may be", err)
		}
	})
}

// A process may be stopped for long between a look at the id and what it does then.
func TestAnIDIsMadeBeforeTheLastLookAtWhetherThePodHoldsItsOwn(t *testing.T) {
	node, err := snowflake.NewNode(1)
	if err != nil {
		t.Fatal(err)
	}
	var atLook snowflake.ID
	g := &Generator{}
	g.use(node, func() error {
		atLook = node.Generate()
		return nil
	})
	if id, err := g.Next(); err != nil || id >= atLook {
		t.Errorf("id %d, %v; at the last look %d was made", id, err, atLook)
	}
}
