//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// shares returns what an allocator says that it owns, and what of that is to stop.
func shares(owned, stopping placement.Set, stop int) allocator.Shares {
	return allocator.Shares{Identity: held(), Count: 64, Owned: []allocator.Share{{Set: owned, Token: 7}}, Stopping: stopping, Stop: stop}
}

// sharer is a watcher of a pod that works on partitions, and the HTTP server that its program posts to.
type sharer struct {
	*watchWork
	t      *testing.T
	dir    string
	server *publish.Server
}

func newSharer(t *testing.T, dir string, hooks Hooks) *sharer {
	t.Helper()
	b, _ := beginning(t, dir)
	if err := b.numberStops(hooks); err != nil {
		t.Fatal(err)
	}
	stopped, part := b.stoppedBy(hooks)
	b.o.Allocator.Stopped = stopped
	b.workOnPartitions(!hooks.hooked(), b.last, part)
	s := &sharer{watchWork: b, t: t, dir: dir, server: publish.NewServer(":0", b.hub, nil)}
	s.server.OnDrained(b.drained)
	return s
}

// says posts the program's report and checks the answer.
func (s *sharer) says(want int, query string) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/v1/drained?"+query, http.NoBody)
	r.RemoteAddr = "127.0.0.1:5"
	w := httptest.NewRecorder()
	s.server.Handler().ServeHTTP(w, r)
	if w.Code != want {
		s.t.Errorf("%s: %d %s; want %d", query, w.Code, w.Body, want)
	}
}

// shows checks what the files and the answers say of partitions.
func (s *sharer) shows(owned, stopping string) identity.Partitions {
	s.t.Helper()
	id, err := identity.Read(s.dir)
	if err != nil || id != s.hub.Get().Identity {
		s.t.Errorf("the files say %+v, the answers %+v, %v", id, s.hub.Get().Identity, err)
	}
	if p := id.Partitions; p.Owned().String() != owned || p.Stopping().String() != stopping {
		s.t.Errorf("%s is owned and %s is to stop; want %s and %s", p.Owned(), p.Stopping(), owned, stopping)
	}
	return id.Partitions
}

// stopping calls Stop as the allocator does.
func (s *sharer) stopping(ctx context.Context, stop allocator.PartitionStop) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.o.Allocator.Partitions.Stop(ctx, stop) }()
	return done
}

func httpHooks() Hooks { return Hooks{DrainHTTP: true, DrainTimeout: time.Minute} }

func TestAPartOfTheWorkStopsWhenTheProgramSaysSo(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	s.publish(held())
	s.publishShares(shares(placement.Between(0, 15), placement.Set{}, 0))
	s.shows("0-15", "")
	s.says(409, "partitions=12&stop=1")
	s.publishShares(shares(placement.Between(0, 15), placement.Of(12), 1))
	if p := s.shows("0-11,13-15", "12"); p.Stop != 1 {
		t.Errorf("the stop has the number %d", p.Stop)
	}
	s.says(409, "stop=1") // the id is not to stop
	s.says(204, "partitions=12&stop=1")
	if err := <-s.stopping(t.Context(), allocator.PartitionStop{Set: placement.Of(12), Number: 1}); err != nil {
		t.Error(err)
	}
	s.publishShares(shares(placement.Between(0, 11).Union(placement.Between(13, 15)), placement.Set{}, 1))
	s.shows("0-11,13-15", "")
	s.says(409, "partitions=12&stop=1")
}

// Somebody may have removed the receipt that locks them, too.
func TestAProcessKnowsWhatWorkMayGoOnAfterTheIDIsWithdrawn(t *testing.T) {
	dir := t.TempDir()
	s := newSharer(t, dir, httpHooks())
	s.publish(held())
	s.publishShares(shares(placement.Between(0, 15), placement.Set{}, 0))
	lost := held().Without(identity.StateLost)
	s.publishShares(allocator.Shares{Identity: lost}) // as the allocator does before it publishes the identity
	s.publish(lost)
	next, _ := beginning(t, dir)
	if left := next.last.Partitions.Owned(); left.String() != "0-15" {
		t.Errorf("the next process knows of work on %q; want 0-15", left)
	}
}

func TestALateReportForAStopThatWasCalledOffDoesNotCount(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	all := placement.Between(0, 15)
	s.publish(held())
	s.publishShares(shares(all, placement.Of(12), 1))
	ctx, callOff := context.WithCancel(t.Context())
	first := s.stopping(ctx, allocator.PartitionStop{Set: placement.Of(12), Number: 1})
	callOff()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("Stop is %v", err)
	}
	s.publishShares(shares(all, placement.Set{}, 1))
	s.shows("0-15", "")
	s.publishShares(shares(all, placement.Of(12), 2))
	s.says(409, "partitions=12&stop=1")
	s.says(204, "partitions=12&stop=2")
	if err := <-s.stopping(t.Context(), allocator.PartitionStop{Set: placement.Of(12), Number: 2}); err != nil {
		t.Error(err)
	}
}

// The drain of an id that was called off keeps its epoch.
func TestALateReportForAnEarlierDrainDoesNotCount(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	for want := 1; want <= 2; want++ {
		s.publish(held())
		s.publishShares(shares(placement.Of(1), placement.Set{}, 0))
		s.publish(withdrawn(identity.StateDraining))
		if id := s.hub.Get(); id.Stop != want {
			t.Errorf("the drain has the number %d, want %d", id.Stop, want)
		}
	}
	s.says(409, "epoch=7&stop=1")
	s.says(204, "epoch=7&stop=2")
	s.publish(held())
	s.publishShares(shares(placement.Of(1), placement.Set{}, 0))
	if id := s.hub.Get(); !id.Assigned() || id.Stop != 0 {
		t.Errorf("nothing is to stop, and the number is %d", id.Stop)
	}
}

func TestWithoutAReporterADrainHasNoNumber(t *testing.T) {
	for _, hooks := range []Hooks{{}, {Drain: &hook.Command{}}} {
		a, _ := beginning(t, t.TempDir())
		if err := a.numberStops(hooks); err != nil {
			t.Fatal(err)
		}
		a.publish(held())
		a.publish(withdrawn(identity.StateDraining))
		if id := a.hub.Get().Identity; id != withdrawn(identity.StateDraining) {
			t.Errorf("the identity is %+v", id)
		}
	}
}

func TestTheNextProcessGoesOnWithTheNumbers(t *testing.T) {
	dir := t.TempDir()
	s := newSharer(t, dir, httpHooks())
	s.publish(held())
	s.publishShares(shares(placement.Between(0, 15), placement.Of(12), 1))
	again := newSharer(t, dir, httpHooks())
	again.publish(held())
	again.publishShares(shares(placement.Between(0, 15), placement.Of(12), 1)) // the allocator's numbers begin anew
	if p := again.shows("0-11,13-15", "12"); p.Stop != 2 {
		t.Errorf("the stop has the number %d", p.Stop)
	}
	again.says(409, "partitions=12&stop=1")
	again.says(204, "partitions=12&stop=2")
}

// Somebody may remove the receipt that locks it.
func TestTheNextProcessKnowsFromTheFilesOnWhatWorkMayGoOn(t *testing.T) {
	dir := t.TempDir()
	s := newSharer(t, dir, httpHooks())
	s.publish(held())
	s.publishShares(shares(placement.Between(0, 15), placement.Of(12), 1))
	if left := newSharer(t, dir, httpHooks()).o.Allocator.Partitions.Left("uid-1"); left.String() != "0-15" {
		t.Errorf("the files show 0-15, and work may go on on %s", left)
	}
	s.publishShares(shares(placement.Between(0, 11), placement.Set{}, 1))
	s.publish(withdrawn(identity.StateDraining))
	again := newSharer(t, dir, httpHooks())
	if left := again.o.Allocator.Partitions.Left("uid-1"); left.String() != "0-11" {
		t.Errorf("0-11 was withdrawn with the id, and work may go on on %s", left)
	}
	if left := again.o.Allocator.Partitions.Left("uid-2"); !left.Empty() {
		t.Errorf("another pod of the same name worked on %s, and that counts as work of this one", left)
	}
}

// The program works on what the earlier process published, until this one knows what becomes of it.
func TestARestartDoesNotDisturbTheWork(t *testing.T) {
	dir := t.TempDir()
	s := newSharer(t, dir, httpHooks())
	s.publish(held())
	s.publishShares(shares(placement.Between(0, 15), placement.Set{}, 0))
	generation, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		t.Fatal(err)
	}
	again := newSharer(t, dir, httpHooks())
	again.shows("0-15", "")
	again.publish(held())
	again.shows("0-15", "")
	again.publishShares(shares(placement.Between(0, 15), placement.Set{}, 0))
	if now, err := os.Readlink(filepath.Join(dir, "..data")); err != nil || now != generation {
		t.Errorf("the files were written again, %v", err)
	}
}

// The allocator may call Stop before it has published the stop.
func TestAStopWaitsUntilItIsShown(t *testing.T) {
	s := newSharer(t, t.TempDir(), Hooks{})
	s.publish(held())
	s.publishShares(shares(placement.Between(0, 3), placement.Set{}, 0))
	ctx, cancel := context.WithCancel(t.Context())
	early := s.stopping(ctx, allocator.PartitionStop{Set: placement.Of(3), Number: 1, Lost: true})
	cancel()
	if err := <-early; !errors.Is(err, context.Canceled) {
		t.Errorf("the files still name partition 3, and Stop is %v", err)
	}
	late := s.stopping(t.Context(), allocator.PartitionStop{Set: placement.Of(3), Number: 1, Lost: true})
	s.publishShares(shares(placement.Between(0, 2), placement.Set{}, 1))
	if err := <-late; err != nil {
		t.Error(err)
	}
	s.shows("0-2", "")
}

func TestWhatIsLostIsShownAsStopping(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	s.publish(held())
	s.publishShares(shares(placement.Between(0, 2), placement.Set{}, 1))
	done := s.stopping(t.Context(), allocator.PartitionStop{Set: placement.Of(3), Number: 1, Lost: true})
	for s.hub.Get().Partitions.Stopping().Empty() {
		<-s.hub.Changed(s.hub.Get().Version)
	}
	s.says(204, "partitions=3&stop=1")
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.shows("0-2", "")
}

func TestWithoutADrainHookPartitionsAreKept(t *testing.T) {
	for want, hooks := range map[bool]Hooks{true: {}, false: httpHooks()} {
		if got := newSharer(t, t.TempDir(), hooks).o.Allocator.Partitions.Keeps; got != want {
			t.Errorf("%+v: keeps %t", hooks, got)
		}
	}
}

func TestWithoutAnIDNoPartitionIsShown(t *testing.T) {
	for _, withdraw := range []func(*sharer){
		func(s *sharer) { s.publish(withdrawn(identity.StateDraining)) },
		func(s *sharer) { s.publishShares(allocator.Shares{}); s.publish(withdrawn(identity.StateLost)) },
		func(s *sharer) { s.showFenced() },
		func(s *sharer) { s.showFenced(); s.publishShares(shares(placement.Of(1, 2), placement.Set{}, 0)) },
		func(s *sharer) { s.publish(withdrawn(identity.StatePending)); s.publish(held()) }, // partitions of before
	} {
		s := newSharer(t, t.TempDir(), httpHooks())
		s.publish(held())
		s.publishShares(shares(placement.Of(1), placement.Set{}, 0))
		withdraw(s)
		s.shows("", "")
		if _, err := os.Stat(filepath.Join(s.dir, "partitions")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is there: %v", err)
		}
	}
}

func TestADrainHookIsAskedAboutAPart(t *testing.T) {
	var asked []string
	d, logged := newDrainer(false, never)
	d.askPart = func(_ context.Context, id identity.Identity, part partStop) error {
		asked = append(asked, fmt.Sprintf("%d: %s by %d", id.ID, part.set, part.number))
		return errHook
	}
	if err := d.stoppedPart(t.Context(), partStop{set: placement.Of(12), number: 3}); !errors.Is(err, errHook) {
		t.Errorf("stopped is %v", err)
	}
	if !slices.Equal(asked, []string{"3: 12 by 3"}) || len(*logged) > 0 {
		t.Errorf("asked %q, logged %q", asked, *logged)
	}
	synctest.Test(t, func(t *testing.T) {
		for give, want := range map[bool]error{false: errDrainTimeout, true: nil} {
			d, logged := newDrainer(give, never)
			d.askPart = func(ctx context.Context, id identity.Identity, _ partStop) error { return never(ctx, id) }
			if err := d.stoppedPart(t.Context(), partStop{set: placement.Of(12)}); !errors.Is(err, want) || len(*logged) != map[bool]int{true: 1}[give] {
				t.Errorf("with give %t: %v; the log has %v", give, err, *logged)
			}
		}
	})
}

func TestACommandHasStoppedWhenTheFilesDoNotNameThePart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		o := Options{Dir: dir, MoveDelay: time.Hour, Allocator: allocator.Options{Pod: podName, Namespace: "shop", PodUID: podUID, Log: logr.Discard()}}
		a, err := newAgent(o, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		c := &runWork{agent: a, follower: child.NewFollower(child.Options{OnPartitions: child.RestartOnPartitions, Log: logr.Discard()})}
		a.work = c
		a.workOnPartitions(false, identity.Identity{}, c.stoppedPart)
		a.publish(held())
		a.publishShares(shares(placement.Between(0, 3), placement.Of(3), 1))
		begin := time.Now()
		err = a.o.Allocator.Partitions.Stop(t.Context(), allocator.PartitionStop{Set: placement.Of(3), Number: 1})
		if took := time.Since(begin); err != nil || took != time.Hour {
			t.Errorf("Stop is %v after %s: other containers read the files", err, took)
		}
		if id, err := identity.Read(dir); err != nil || id.Partitions.Owned().String() != "0-2" {
			t.Errorf("the files say %+v, %v", id, err)
		}
	})
}
