//go:build linux

package child

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// sharing returns id 0 of three with partitions that were taken at a token.
func sharing(set placement.Set, token int64) identity.Identity {
	id := assigned(0, 3, 7)
	id.Partitions = identity.PartitionsOf(8, []identity.Share{{Set: set, Token: token}}, placement.Set{}, 0)
	return id
}

func on(what OnPartitions) func(*Options) {
	return func(o *Options) { o.OnPartitions = what }
}

// move does what agents do with the next identity: the command stops before anything shows what it lost, and starts after that.
func move(f *Follower, id identity.Identity) {
	f.Restrict(id.Partitions.Owned())
	f.Publish(id)
}

func TestFillKnowsPartitionsOnlyWhereThereAreSome(t *testing.T) {
	args := []string{"--queues={partitions}", "{{partitions}}"}
	if got := Fill(args, assigned(0, 3, 7)); !slices.Equal(got, args) {
		t.Errorf("without partitions the arguments are %q", got)
	}
	some, none := sharing(placement.Of(0, 1, 5), 7), sharing(placement.Set{}, 7)
	if got := Fill(args, some); !slices.Equal(got, []string{"--queues=0-1,5", "{partitions}"}) {
		t.Errorf("the arguments are %q", got)
	}
	if got := Fill(args, none); !slices.Equal(got, []string{"--queues=", "{partitions}"}) {
		t.Errorf("with none the arguments are %q", got)
	}
	for want, args := range map[bool][]string{true: {"a", "b{partitions}"}, false: {"{{partitions}}", "{id}", "partitions"}} {
		if got := NamesPartitions(args); got != want {
			t.Errorf("%q name partitions: %t", args, got)
		}
	}
	got := environment([]string{"A=1", "IDALLOC_PARTITIONS=9"}, some)
	if want := []string{"A=1", "IDALLOC_ID=0", "IDALLOC_COUNT=3", "IDALLOC_TOKEN=7", "IDALLOC_PARTITIONS=0-1,5"}; !slices.Equal(got, want) {
		t.Errorf("the environment is %q", got)
	}
	got = environment([]string{"IDALLOC_PARTITIONS=9"}, assigned(0, 3, 7))
	if want := []string{"IDALLOC_PARTITIONS=9", "IDALLOC_ID=0", "IDALLOC_COUNT=3", "IDALLOC_TOKEN=7"}; !slices.Equal(got, want) {
		t.Errorf("without partitions the environment is %q", got)
	}
}

func TestACommandFollowsItsPartitions(t *testing.T) {
	s := newStage(t)
	f := s.follower("echo", on(RestartOnPartitions), "{partitions}")
	done := f.going(t.Context())
	move(f, sharing(placement.Set{}, 0))
	if _, ok := f.begin(t.Context()); ok {
		t.Fatal("a command begins without partitions")
	}
	move(f, sharing(placement.Between(0, 3), 7))
	expect(t, s, "0-3 0 3 7")
	move(f, sharing(placement.Between(0, 5), 7))
	expect(t, s, "stopped", "0-5 0 3 7")
	move(f, sharing(placement.Between(0, 1), 7))
	expect(t, s, "stopped", "0-1 0 3 7")
	must(t, f.StoppedWorkOn(t.Context(), placement.Between(2, 5)))
	move(f, sharing(placement.Set{}, 0))
	expect(t, s, "stopped")
	must(t, f.Stopped(t.Context()))
	move(f, sharing(placement.Of(6), 9))
	expect(t, s, "6 0 3 7")
	f.Signal(syscall.SIGTERM)
	expect(t, s, "stopped")
	if got := <-done; got.code != 0 || got.err != nil {
		t.Errorf("Run returned %+v", got)
	}
}

// Another id may have worked on the partition in between.
func TestAPartitionThatCameBackRestartsTheCommand(t *testing.T) {
	for name, back := range map[string]func(*Follower){
		"after it was away":   func(f *Follower) { f.Restrict(placement.Of(0)); f.Publish(sharing(placement.Between(0, 1), 7)) },
		"with a higher token": func(f *Follower) { move(f, sharing(placement.Between(0, 1), 8)) },
		"after the id was too": func(f *Follower) {
			f.Publish(without(identity.StateLost))
			f.Publish(sharing(placement.Between(0, 1), 7))
		},
	} {
		for _, what := range []OnPartitions{RestartOnPartitions, SignalOnPartitions} {
			t.Run(name, func(t *testing.T) {
				s := newStage(t)
				f := s.follower("echo", on(what), "{partitions}")
				done := f.going(t.Context())
				move(f, sharing(placement.Between(0, 1), 7))
				expect(t, s, "0-1 0 3 7")
				back(f)
				expect(t, s, "stopped", "0-1 0 3 7")
				f.Signal(syscall.SIGTERM)
				<-done
			})
		}
	}
}

func TestMorePartitionsAreASignal(t *testing.T) {
	s := newStage(t)
	f := s.follower("signals", on(SignalOnPartitions))
	done := f.going(t.Context())
	move(f, sharing(placement.Of(0), 7))
	expect(t, s, "ready")
	more := identity.PartitionsOf(8, []identity.Share{{Set: placement.Of(0), Token: 7}, {Set: placement.Of(1), Token: 9}}, placement.Set{}, 0)
	next := sharing(placement.Of(0), 7)
	next.Partitions = more
	move(f, next)
	expect(t, s, syscall.SIGHUP.String())
	next.Partitions.Stop = 5 // not for the command
	move(f, next)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.StoppedWorkOn(ctx, placement.Of(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("the command may have read the new set, and StoppedWorkOn returned %v", err)
	}
	move(f, sharing(placement.Of(0), 7)) // only its end tells that it has stopped
	expect(t, s, syscall.SIGTERM.String(), "ready")
	f.Signal(syscall.SIGTERM)
	expect(t, s, syscall.SIGTERM.String())
	if got := <-done; got.code != 5 {
		t.Errorf("Run returned %+v", got)
	}
}

// Until the files show what is left, the command would read there what is another id's.
func TestNoCommandStartsBeforeTheRestIsPublished(t *testing.T) {
	s := newStage(t)
	f := s.follower("echo", on(RestartOnPartitions), "{partitions}")
	done := f.going(t.Context())
	move(f, sharing(placement.Between(0, 3), 7))
	expect(t, s, "0-3 0 3 7")
	f.Restrict(placement.Between(0, 1))
	expect(t, s, "stopped")
	must(t, f.StoppedWorkOn(t.Context(), placement.Between(2, 3)))
	if _, ok := f.begin(t.Context()); ok {
		t.Fatal("a command starts under the set that is being withdrawn")
	}
	f.Publish(sharing(placement.Between(0, 1), 7))
	expect(t, s, "0-1 0 3 7")
	f.Signal(syscall.SIGTERM)
	<-done
}

func TestStoppedWorkOnWaitsForTheCommandThatMayWorkOnIt(t *testing.T) {
	s := newStage(t)
	f := s.follower("stubborn", on(RestartOnPartitions))
	done := f.going(t.Context())
	move(f, sharing(placement.Between(0, 3), 7))
	expect(t, s, "ready")
	move(f, sharing(placement.Between(0, 1), 7))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.StoppedWorkOn(ctx, placement.Of(2)); !errors.Is(err, context.Canceled) {
		t.Errorf("the command runs, and StoppedWorkOn returned %v", err)
	}
	if err := f.StoppedWorkOn(ctx, placement.Of(4)); err != nil {
		t.Errorf("no command works on it, and StoppedWorkOn returned %v", err)
	}
	f.Fence(0)
	must(t, f.StoppedWorkOn(t.Context(), placement.Of(2)))
	f.Signal(syscall.SIGTERM)
	<-done
}
