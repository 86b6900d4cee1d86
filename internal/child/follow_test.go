//go:build linux

package child

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/identity"
)

func assigned(id, count int, token int64) identity.Identity {
	return identity.Identity{State: identity.StateAssigned, ID: id, Count: count, Token: token, Pod: "worker-x", Namespace: "shop"}
}

func without(state identity.State) identity.Identity {
	return identity.Identity{State: state, ID: identity.None, Count: 3, Pod: "worker-x", Namespace: "shop"}
}

// outcome is what Run returned.
type outcome struct {
	code int
	err  error
}

func (f *Follower) going(ctx context.Context) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		code, err := f.Run(ctx)
		done <- outcome{code, err}
	}()
	return done
}

// awaitProcess waits until the follower knows the command that has reported already. Before that, it has no process to pass a signal on to.
func (f *Follower) awaitProcess() {
	for known := false; !known; runtime.Gosched() {
		f.mu.Lock()
		known = f.process != nil
		f.mu.Unlock()
	}
}

func expect(t *testing.T, s *stage, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := s.says(); got != w {
			t.Errorf("the command says %q, want %q", got, w)
		}
	}
}

func TestFillReplacesWhatItKnows(t *testing.T) {
	args := []string{
		"--shard={id}", "--total={count}", "{token}", "{namespace}/{pod}", "{{id}}", "${{count}}", "{other}", "{{ .x }}", "{id}{id}",
		`{"id":{id}}`, "{ID}", "{", "}", "", "{{{id}}}",
	}
	want := []string{
		"--shard=3", "--total=5", "77", "shop/worker-x", "{id}", "${count}", "{other}", "{{ .x }}", "33",
		`{"id":3}`, "{ID}", "{", "}", "", "{{id}}",
	}
	if got := Fill(args, assigned(3, 5, 77)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestEnvironmentHasOneIdentity(t *testing.T) {
	got := environment([]string{"A=1", "IDALLOC_ID=9", "IDALLOC_DIR=/d", "IDALLOC_TOKEN="}, assigned(3, 5, 77))
	want := []string{"A=1", "IDALLOC_DIR=/d", "IDALLOC_ID=3", "IDALLOC_COUNT=5", "IDALLOC_TOKEN=77"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestACommandFollowsItsIdentity(t *testing.T) {
	s := newStage(t)
	f := s.follower("echo", nil, "{id}/{count}")
	done := f.going(t.Context())
	f.Publish(without(identity.StatePending))
	f.Publish(assigned(0, 3, 7))
	expect(t, s, "0/3 0 3 7")
	f.Publish(assigned(0, 5, 7))
	expect(t, s, "stopped", "0/5 0 5 7")
	f.Publish(without(identity.StateDraining))
	expect(t, s, "stopped")
	must(t, f.Stopped(t.Context()))
	f.Publish(assigned(1, 5, 9))
	expect(t, s, "1/5 1 5 9")
	f.Signal(syscall.SIGTERM)
	expect(t, s, "stopped")
	if got := <-done; got.code != 0 || got.err != nil {
		t.Errorf("Run returned %+v", got)
	}
}

// If the same id goes and comes back, the command must restart, because another pod may have had the id meanwhile.
func TestARevokedIdentityRestartsEvenIfItCameBack(t *testing.T) {
	s := newStage(t)
	f := s.follower("echo", nil)
	done := f.going(t.Context())
	f.Publish(assigned(0, 3, 7))
	expect(t, s, " 0 3 7")
	f.Publish(without(identity.StateLost))
	f.Publish(assigned(0, 3, 7))
	expect(t, s, "stopped", " 0 3 7")
	f.Signal(syscall.SIGTERM)
	<-done
}

func TestACountAloneMayBeIgnored(t *testing.T) {
	s := newStage(t)
	f := s.follower("echo", func(o *Options) { o.KeepOnCountChange = true })
	done := f.going(t.Context())
	f.Publish(assigned(0, 3, 7))
	expect(t, s, " 0 3 7")
	f.Publish(assigned(0, 5, 7))
	if reason := f.mustStop(t.Context(), task{id: assigned(0, 3, 7)}); reason != "" {
		t.Errorf("the command has to stop: %s", reason)
	}
	f.Publish(assigned(2, 6, 8)) // an id is not
	expect(t, s, "stopped", " 2 6 8")
	f.Signal(syscall.SIGTERM)
	<-done
}

func TestStoppedWaitsForTheCommand(t *testing.T) {
	s := newStage(t)
	f := s.follower("stubborn", nil)
	done := f.going(t.Context())
	f.Publish(assigned(0, 3, 7))
	expect(t, s, "ready")
	f.Publish(without(identity.StateDraining))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := f.Stopped(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stopped returned %v while the command runs", err)
	}
	f.Fence(boottime.Now())
	must(t, f.Stopped(t.Context()))
	f.Signal(syscall.SIGINT)
	if got := <-done; got.code != 130 {
		t.Errorf("Run returned %+v for SIGINT without a command", got)
	}
}

func TestFenceKillsInTimeAndOutlastsALateIdentity(t *testing.T) {
	s := newStage(t)
	f := s.follower("stubborn", nil)
	done := f.going(t.Context())
	f.Publish(assigned(0, 3, 7))
	expect(t, s, "ready")
	f.Fence(boottime.Now() + 20*time.Millisecond)
	f.Publish(assigned(0, 4, 7)) // was under way when the id was fenced
	must(t, f.Stopped(t.Context()))
	if _, ok := f.begin(t.Context()); ok {
		t.Fatal("an identity from before the fence starts the command")
	}
	f.Publish(without(identity.StateFenced))
	f.Publish(assigned(0, 4, 9))
	expect(t, s, "ready")
	f.Fence(0)
	f.Signal(syscall.SIGTERM)
	if got := <-done; got.code != 137 {
		t.Errorf("Run returned %+v", got)
	}
}

func TestACommandThatEndsEndsRun(t *testing.T) {
	s := newStage(t)
	f := s.follower("exit", nil, "7")
	f.Publish(assigned(0, 3, 7))
	if got := <-f.going(t.Context()); got.code != 7 || got.err != nil {
		t.Errorf("Run returned %+v", got)
	}
	if !f.EndedByItself() {
		t.Error("it was not told to end, and that is not known")
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	s := newStage(t)
	f := s.follower("signals", nil)
	f.Signal(syscall.SIGUSR1) // no process to pass it on to
	done := f.going(t.Context())
	f.Publish(assigned(0, 3, 7))
	expect(t, s, "ready")
	f.awaitProcess()
	f.Signal(syscall.SIGHUP)
	expect(t, s, syscall.SIGHUP.String())
	f.Signal(syscall.SIGINT)
	expect(t, s, syscall.SIGINT.String())
	if got := <-done; got.code != 5 {
		t.Errorf("Run returned %+v", got)
	}
	if f.EndedByItself() {
		t.Error("it was told to end, and that counts as a failure")
	}
}

func TestASecondSIGTERMIsNotPassedOn(t *testing.T) {
	s := newStage(t)
	f := s.follower("stubborn", func(o *Options) { o.StopTimeout = 50 * time.Millisecond })
	done := f.going(t.Context())
	f.Publish(assigned(0, 3, 7))
	expect(t, s, "ready")
	f.Publish(assigned(0, 4, 7))
	f.Signal(syscall.SIGTERM)
	if got := <-done; got.code != 137 {
		t.Errorf("Run returned %+v", got)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	s := newStage(t)
	f := s.follower("echo", nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := f.going(ctx)
	f.Publish(assigned(0, 3, 7))
	expect(t, s, " 0 3 7")
	broken := errors.New("broken")
	cancel(broken)
	expect(t, s, "stopped")
	if got := <-done; !errors.Is(got.err, broken) {
		t.Errorf("Run returned %+v", got)
	}
	if f.EndedByItself() {
		t.Error("it was told to end, and that counts as a failure")
	}
	if _, ok := f.begin(ctx); ok {
		t.Error("a command starts after the end")
	}
}

func TestACommandThatIsNotThere(t *testing.T) {
	s := newStage(t)
	f := NewFollower(Options{Runner: s.Runner, Command: []string{"/no/such/{id}"}, Log: s.follower("", nil).o.Log})
	f.Publish(assigned(0, 3, 7))
	got := <-f.going(t.Context())
	var failed *StartError
	if !errors.As(got.err, &failed) || failed.Code != 127 {
		t.Errorf("Run returned %+v", got)
	}
	if !f.EndedByItself() {
		t.Error("it was not told to end, and that is not known")
	}
	must(t, f.Stopped(t.Context()))
}
