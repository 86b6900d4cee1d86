package idalloc

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

var errBroken = errors.New("broken")

// started is a call that has begun, and how it may end.
type started struct {
	ctx context.Context //nolint:containedctx // the test looks at it
	Partition

	result chan error
}

// ends ends the call.
func (s started) ends(err error) { s.result <- err }

// rig is a runner whose calls the test ends.
type rig struct {
	*runner

	t     *testing.T
	calls chan started
	now   identity.Identity
}

// stopped blocks until no call runs.
func (g *rig) stopped(ctx context.Context) error { return g.stop(ctx, allocator.Stop{All: true}) }

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &rig{t: t, calls: make(chan started, 100), now: identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5, Token: 7}}
	g.runner = newRunner(t.Context(), func(ctx context.Context, p Partition) error {
		s := started{ctx, p, make(chan error, 1)}
		g.calls <- s
		return <-s.result
	})
	g.current = func() identity.Identity { return g.now }
	close(g.known)
	return g
}

// owns publishes what the process may work on.
func (g *rig) owns(owned, stopping placement.Set, token int64) {
	g.t.Helper()
	id := g.now
	id.Partitions = identity.PartitionsOf(64, []identity.Share{{Set: owned, Token: token}}, stopping, 0)
	g.publish(id)
}

// next returns the next call that begins.
func (g *rig) next() started {
	g.t.Helper()
	select {
	case s := <-g.calls:
		return s
	case <-time.After(time.Minute):
		g.t.Fatal("no call begins")
		return started{}
	}
}

// none checks that no call has begun. All calls for what was published begin before publish returns, and each of them is in calls when
// its goroutine has run; so another one, which begins after it, tells that there was none before.
func (g *rig) none(probe int) {
	g.t.Helper()
	g.owns(placement.Of(probe), placement.Set{}, 1)
	if s := g.next(); s.Number != probe {
		g.t.Errorf("a call for partition %d has begun", s.Number)
	}
}

func (g *rig) cause(s started) error {
	g.t.Helper()
	<-s.ctx.Done()
	return context.Cause(s.ctx)
}

func TestACallKnowsItsPartition(t *testing.T) {
	g := newRig(t)
	g.owns(placement.Of(12), placement.Set{}, 9)
	if s := g.next(); s.Partition != (Partition{Number: 12, Count: 64, Token: 9, Instance: g.now}) || s.ctx.Err() != nil {
		t.Errorf("%+v, %v", s.Partition, s.ctx.Err())
	}
}

func TestWhyACallEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*rig)
		want   error
	}{
		"it is to move":          {func(g *rig) { g.owns(placement.Of(1, 2), placement.Of(1), 9) }, ErrRevoked},
		"another id has it":      {func(g *rig) { g.owns(placement.Of(2), placement.Set{}, 9) }, ErrLost},
		"another pod has the id": {func(g *rig) { g.now = g.now.Without(identity.StateLost); g.owns(placement.Set{}, placement.Set{}, 0) }, ErrLost},
		"the id is to move": {func(g *rig) {
			g.now = g.now.Without(identity.StateDraining)
			g.owns(placement.Set{}, placement.Set{}, 0)
		}, ErrRevoked},
		"no contact": {func(g *rig) { g.now = g.now.Without(identity.StateFenced); g.owns(placement.Set{}, placement.Set{}, 0) }, ErrFenced},
		"Run ends":   {func(g *rig) { go g.close(g.t.Context()) }, ErrClosing}, //nolint:errcheck // the test looks at the context
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			g.owns(placement.Of(1), placement.Set{}, 9)
			s := g.next()
			tc.change(g)
			if cause := g.cause(s); !errors.Is(cause, tc.want) {
				t.Errorf("the cause is %v, want %v", cause, tc.want)
			}
			s.ends(s.ctx.Err())
		})
	}
}

func TestTheOthersAreNotDisturbed(t *testing.T) {
	g := newRig(t)
	g.owns(placement.Of(1), placement.Set{}, 9)
	stays := g.next()
	g.owns(placement.Of(1, 2), placement.Set{}, 9)
	leaves := g.next()
	g.owns(placement.Of(1), placement.Set{}, 9)
	_ = g.cause(leaves)
	if err := stays.ctx.Err(); err != nil {
		t.Errorf("the call for a partition that stays ends: %v", context.Cause(stays.ctx))
	}
	g.none(5) // also not for 1, which is not owned any more
	if leaves.Number != 2 || stays.Number != 1 {
		t.Errorf("%d stays, %d leaves", stays.Number, leaves.Number)
	}
}

// One that does not return keeps nothing but its own partition.
func TestEachCallThatReturnsIsToldOf(t *testing.T) {
	g := newRig(t)
	g.owns(placement.Of(1, 2), placement.Set{}, 9)
	calls := map[int]started{}
	for range 2 {
		c := g.next()
		calls[c.Number] = c
	}
	told, stopped := make(chan placement.Set, 2), make(chan error)
	go func() {
		stopped <- g.stop(t.Context(), allocator.Stop{Partitions: placement.Of(1, 2), Stopped: func(set placement.Set) { told <- set }})
	}()
	for _, number := range []int{2, 1} {
		calls[number].ends(nil)
		if set := <-told; set.String() != strconv.Itoa(number) {
			t.Errorf("%s has stopped, want %d", set, number)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStoppedWaitsForTheCallsOfItsPartitions(t *testing.T) {
	g := newRig(t)
	g.owns(placement.Of(1), placement.Set{}, 9)
	one := g.next()
	g.owns(placement.Of(1, 2), placement.Set{}, 9)
	two := g.next()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := g.stop(ended, allocator.Stop{Partitions: placement.Of(1), Stopped: func(placement.Set) { t.Error("1 has stopped, although the call runs") }}); err == nil {
		t.Error("it has stopped, although the call runs")
	}
	told, stopped := func(placement.Set) {}, make(chan error)
	go func() { stopped <- g.stop(t.Context(), allocator.Stop{Partitions: placement.Of(1), Stopped: told}) }()
	one.ends(nil)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := g.stopped(ended); err == nil {
		t.Error("all have stopped, although one runs")
	}
	two.ends(nil)
	if err := g.stopped(t.Context()); err != nil {
		t.Error(err)
	}
}

// A call may have been told to stop, and then the partition stays after all.
func TestACallBeginsAgainWhenItIsNotToStopAnyMore(t *testing.T) {
	g := newRig(t)
	g.owns(placement.Of(1), placement.Set{}, 9)
	first := g.next()
	g.owns(placement.Of(1), placement.Of(1), 9)
	_ = g.cause(first)
	g.owns(placement.Of(1), placement.Set{}, 9)
	first.ends(nil)
	if again := g.next(); again.Number != 1 || again.Token != 9 {
		t.Errorf("%+v", again.Partition)
	}
}

func TestWorkThatIsDoneBeginsAgainOnlyAfterATake(t *testing.T) {
	g := newRig(t)
	g.owns(placement.Of(1), placement.Set{}, 9)
	g.next().ends(nil)
	if err := g.stopped(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.owns(placement.Of(1, 2), placement.Set{}, 9)
	if s := g.next(); s.Number != 2 {
		t.Errorf("a call for %d", s.Number)
	}
	g.owns(placement.Of(2), placement.Set{}, 9)
	g.owns(placement.Of(1, 2), placement.Set{}, 11)
	if s := g.next(); s.Number != 1 || s.Token != 11 {
		t.Errorf("%+v", s.Partition)
	}
}

func TestWhichErrorsEndRun(t *testing.T) {
	for name, tc := range map[string]struct {
		revoked bool
		err     error
		want    error
	}{
		"its own":                           {err: errBroken, want: errBroken},
		"its own, after it was revoked":     {revoked: true, err: errBroken, want: errBroken},
		"none":                              {},
		"the context's":                     {revoked: true, err: context.Canceled},
		"the cause":                         {revoked: true, err: ErrRevoked},
		"a context's that has not ended":    {err: context.Canceled, want: context.Canceled},
		"a cause that has not come to pass": {err: ErrRevoked, want: ErrRevoked},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			g.owns(placement.Of(1), placement.Set{}, 9)
			s := g.next()
			if tc.revoked {
				g.owns(placement.Of(1), placement.Of(1), 9)
			}
			s.ends(tc.err)
			if err := g.stopped(t.Context()); err != nil {
				t.Fatal(err)
			}
			if failed := g.ctx.Err() != nil; failed != (tc.want != nil) {
				t.Errorf("failed: %v", failed)
			}
			if err := g.close(t.Context()); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("close returns %v, want %v", err, tc.want)
			}
		})
	}
}

func TestNothingBeginsAfterTheEnd(t *testing.T) {
	g := newRig(t)
	if err := g.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.owns(placement.Of(1), placement.Set{}, 9)
	if err := g.stopped(t.Context()); err != nil || len(g.runner.calls) > 0 {
		t.Errorf("%v, %d calls", err, len(g.runner.calls))
	}
}

// A process that was suspended past its deadline sees it at the first look, before anybody has told it.
func TestAFencedCallSeesItByTheClock(t *testing.T) {
	g := newRig(t)
	g.strict = true
	g.owns(placement.Of(1), placement.Set{}, 9)
	s := g.next()
	if err := s.ctx.Err(); err != nil {
		t.Fatal(err)
	}
	g.now = g.now.Without(identity.StateFenced)
	if err := s.ctx.Err(); err == nil || !errors.Is(context.Cause(s.ctx), ErrFenced) {
		t.Errorf("%v, %v", err, context.Cause(s.ctx))
	}
	s.ends(nil)
	if err := g.stopped(t.Context()); err != nil || len(g.runner.calls) > 0 {
		t.Errorf("%v: a call began while the process is fenced", err)
	}
}
