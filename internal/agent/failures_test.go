//go:build unix

package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// failing starts a watcher in a directory, and notes the errors that end it.
func failing(t *testing.T, dir string) (b *watchWork, ends *[]error) {
	t.Helper()
	ends = &[]error{}
	o := Options{Dir: dir, Allocator: allocator.Options{Pod: "worker-0", Namespace: "shop", PodUID: "uid-1", Log: logr.Discard()}}
	a, err := newAgent(o, func(err error) { *ends = append(*ends, err) })
	if err != nil {
		t.Fatal(err)
	}
	b = &watchWork{agent: a}
	a.work = b
	return b, ends
}

// occupy puts a file of somebody else in the place of one of ours, so that nothing can be published any more.
func occupy(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
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
	if err := b.readers.wait(t.Context()); !errors.Is(err, errStillShown) {
		t.Errorf("the files still show the id, and the wait for their readers returned %v", err)
	}
}

// What a later process must find is kept before anybody can act on the change.
func TestWhatCannotBeKeptIsNotShown(t *testing.T) {
	dir := t.TempDir()
	b, ends := failing(t, dir)
	b.publish(held())
	if err := os.Mkdir(filepath.Join(dir, "..swap-.last-id"), 0o700); err != nil { // where the note would be written first
		t.Fatal(err)
	}
	b.publish(withdrawn(identity.StateDraining))
	if now := b.hub.Get().Identity; !now.Assigned() || len(*ends) != 1 {
		t.Errorf("HTTP says %s, and the process ends with %v", now, *ends)
	}
	b, ends = failing(t, t.TempDir())
	b.publish(held())
	b.stops.numbered, b.stops.save = true, func(int) error { return errHook }
	b.publish(withdrawn(identity.StateDraining))
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
		if len(logged) != 1 || !strings.Contains(logged[0], "the work may go on under an id that is withdrawn") {
			t.Errorf("the log has %q", logged)
		}
		if _, mayWork := b.mayWork(); !mayWork {
			t.Error("nobody stopped the work, and it counts as stopped")
		}
	})
}

func TestOnlyTheLastWishToPauseCounts(t *testing.T) {
	for _, wishes := range [][]bool{{true}, {true, false}, {false, true, true}, {true, true, false}} {
		p := newPausing()
		for _, wish := range wishes {
			p.pause(wish)
		}
		if got := <-p.wishes; got != wishes[len(wishes)-1] || len(p.wishes) > 0 {
			t.Errorf("after %v the pod pauses: %t", wishes, got)
		}
	}
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
