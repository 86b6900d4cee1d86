//go:build linux

package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/pkg/identity"
)

// failing starts a watcher in a directory, and notes the errors that end it.
func failing(t *testing.T, dir string) (b *watchWork, ends *[]error) {
	t.Helper()
	ends = &[]error{}
	b = watcherOf(anAgent(t, optionsOf(dir)))
	b.fail = func(err error) { *ends = append(*ends, err) }
	return b, ends
}

// occupy puts a foreign file in the place of one of ours, so that nothing can be published any more.
func occupy(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o600)))
}

// HTTP and files must not disagree about who acts, and an id that ends has to end wherever that can still be said.
func TestFilesThatCannotBeWrittenEndTheProcess(t *testing.T) {
	dir := t.TempDir()
	b, ends := failing(t, dir)
	occupy(t, dir, "count")
	b.publish(held())
	if now := b.hub.Get().Identity; now.Assigned() || len(*ends) != 1 {
		t.Errorf("HTTP says %s, and the process ends with %v", now, *ends)
	}
	dir = t.TempDir()
	b, ends = failing(t, dir)
	b.publish(held())
	occupy(t, dir, "count")
	b.publish(withdrawn(identity.StateDraining))
	if now := b.hub.Get().Identity; now.State != identity.StateDraining || len(*ends) != 1 {
		t.Errorf("HTTP says %s, and the process ends with %v", now, *ends)
	}
	if err := b.readers.wait(t.Context(), all, time.Time{}); !errors.Is(err, errStillShown) {
		t.Errorf("the files still show the id, and the wait for their readers returned %v", err)
	}
}

// What a later process must find is kept before the program can act on the change.
func TestWhatCannotBeKeptIsNotShown(t *testing.T) {
	dir := t.TempDir()
	b, ends := failing(t, dir)
	b.publish(held())
	if err := os.MkdirAll(filepath.Join(dir, "..swap-.last-id", "full"), 0o700); err != nil { // where the note would be written first
		t.Fatal(err)
	}
	b.publish(withdrawn(identity.StateDraining))
	if now := b.hub.Get().Identity; !now.Assigned() || len(*ends) != 1 {
		t.Errorf("HTTP says %s, and the process ends with %v", now, *ends)
	}
	b, ends = failing(t, t.TempDir())
	b.publish(held())
	b.stops.save = func(int) error { return errHook }
	b.publish(draining(1))
	if now := b.hub.Get().Identity; !now.Assigned() || !slices.Equal(*ends, []error{errHook}) {
		t.Errorf("HTTP says %s, and the process ends with %v", now, *ends)
	}
}

// The process ends soon, and the work must not outlast the deadline because of that.
func TestAFenceHookIsTriedUntilItsTimeIsOverWhateverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		b, _ := failing(t, t.TempDir())
		b.o.Allocator.Log = funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
		b.publish(held())
		tries := 0
		f := &fencer{watchWork: b, lead: 10 * time.Second, kill: func(ctx context.Context, _ identity.Identity) error {
			if tries++; tries == 1 && ctx.Err() != nil {
				t.Error("the kill is called off before it began")
			}
			return errHook
		}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begin := time.Now()
		f.fence(ctx)
		if took := time.Since(begin); took != f.lead || tries < 10 {
			t.Errorf("gave up after %d tries and %s", tries, took)
		}
		if len(logged) != 1 || !strings.Contains(logged[0], "the work may continue under an id that is withdrawn") {
			t.Errorf("the log has %q", logged)
		}
		if _, mayWork := b.mayWork(); !mayWork {
			t.Error("the work was not stopped, and it counts as stopped")
		}
	})
}

func TestACommandHearsOfPartitionsOnlyWhereItWorksOnThem(t *testing.T) {
	for _, c := range []struct {
		partitions bool
		asked      child.OnPartitions
		want       child.OnPartitions
	}{
		{false, child.IgnorePartitions, child.IgnorePartitions},
		{false, child.SignalOnPartitions, child.IgnorePartitions},
		{true, child.IgnorePartitions, child.RestartOnPartitions},
		{true, child.RestartOnPartitions, child.RestartOnPartitions},
		{true, child.SignalOnPartitions, child.SignalOnPartitions},
	} {
		if got := (Command{OnPartitions: c.asked}).onPartitions(Options{Partitions: c.partitions}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// Other containers may still act under the id.
func TestASlotIsKeptWhileTheFilesMayShowItsID(t *testing.T) {
	dir := t.TempDir()
	b, ends := failing(t, dir)
	c := &runWork{agent: b.agent, follower: child.NewFollower(child.Options{Log: logr.Discard()})}
	c.work = c
	c.publish(held())
	occupy(t, dir, "count")
	if err := c.stopShowing(t.Context()); !errors.Is(err, errStillShown) || len(*ends) != 1 {
		t.Errorf("%v, and the process ends with %v", err, *ends)
	}
	c.giveBack(t.Context(), nil) // it does not ask the allocator for anything
}

func TestSignalsReachTheCommand(t *testing.T) {
	f := child.NewFollower(child.Options{Log: logr.Discard()})
	ctx, cancel := context.WithCancel(t.Context())
	wait := forward(ctx, f)
	must(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	if code, err := f.Run(t.Context()); code != 128+int(syscall.SIGTERM) || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	cancel()
	wait()
}

// ended is a context that has ended, so that a process does only what it does before it claims.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// leave publishes as an earlier process of worker-0 does.
func leave(t *testing.T, dir string, ids ...identity.Identity) {
	t.Helper()
	b, _ := beginning(t, dir)
	for _, id := range ids {
		b.publish(id)
	}
}

// The deadline was not watched since the process before this one ended, and the API server may be away.
func TestAWatcherThatIsStartedAgainFencesWorkThatMayContinue(t *testing.T) {
	for name, left := range map[string][]identity.Identity{
		"an id in the files": {held()}, "an id that was withdrawn": {held(), withdrawn(identity.StateDraining)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			leave(t, dir, left...)
			kills := filepath.Join(t.TempDir(), "kills")
			fence, err := hook.Parse(`/bin/sh -c 'echo "$IDALLOC_ID" >>` + kills + `; test "$(wc -l <` + kills + `)" -gt 1'`)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Dir: dir, FenceAfter: time.Minute, Allocator: asked(t, away)}
			must(t, Watch(ended(t), o, Hooks{Fence: fence}))
			if b, err := os.ReadFile(kills); err != nil || string(b) != "3\n3\n" { //nolint:gosec // a file of the test
				t.Errorf("the hook has written %q, %v; it fails the first time", b, err)
			}
			if hasID(t, dir) {
				t.Error("the files show an id that is not watched")
			}
		})
	}
}

func TestAWatcherWithAHookNeedsNoPartitions(t *testing.T) {
	o := Options{Dir: t.TempDir(), HTTPAddress: "127.0.0.1:0", Allocator: asked(t, away)}
	must(t, Watch(ended(t), o, Hooks{DrainHTTP: true}))
}

// Otherwise a report about an earlier stop could count for a later one, or work could continue under an id that is not asked about.
func TestAWatcherDoesNotBeginWithoutWhatTheOneBeforeItKept(t *testing.T) {
	for _, name := range []string{".last-stop", ".last-id"} {
		dir := t.TempDir()
		leave(t, dir, held(), withdrawn(identity.StateDraining))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("?"), 0o600))
		err := Watch(ended(t), Options{Dir: dir, Allocator: asked(t, away)}, Hooks{DrainHTTP: true})
		if err == nil || !strings.Contains(err.Error(), "delete the pod") {
			t.Errorf("%s is damaged, and Watch returned %v", name, err)
		}
	}
}
