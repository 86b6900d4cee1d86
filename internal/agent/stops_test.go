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
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/internal/child"
	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/internal/serve"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// dividing returns an identity with these of 64 partitions, of which some are to stop.
func dividing(owned, stopping placement.Set, stop int) identity.Identity {
	id := held()
	id.Partitions = identity.PartitionsOf(64, []identity.Share{{Set: owned, Token: 7}}, stopping, stop)
	return id
}

// draining returns the identity of a drain with this number.
func draining(number int) identity.Identity {
	id := withdrawn(identity.StateDraining)
	id.Stop = number
	return id
}

// sharer is a watcher of a pod that works on partitions, and the HTTP server that its program posts to.
type sharer struct {
	*watchWork
	t      *testing.T
	dir    string
	server *serve.Server
}

func newSharer(t *testing.T, dir string, hooks Hooks) *sharer {
	t.Helper()
	b, _ := beginning(t, dir)
	must(t, b.numberStops(hooks))
	b.left, b.o.Allocator.Stop = b.last, b.stopBy(hooks)
	s := &sharer{watchWork: b, t: t, dir: dir, server: serve.NewServer(":0", b.hub, nil)}
	must(t, b.hears(s.server, hooks))
	return s
}

// says posts the program's report and checks the answer.
func (s *sharer) says(want int, query string) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/v1/drained?"+query, http.NoBody)
	r.RemoteAddr = "127.0.0.1:5"
	r.Header.Set(serve.SecretHeader, secretIn(s.t, s.dir))
	w := httptest.NewRecorder()
	s.server.Handler().ServeHTTP(w, r)
	if w.Code != want {
		s.t.Errorf("%s: %d %s; want %d", query, w.Code, w.Body, want)
	}
}

// secretIn is the secret that the program finds in a directory.
func secretIn(t *testing.T, dir string) string {
	t.Helper()
	secret, err := os.ReadFile(filepath.Join(dir, publish.SecretName)) //nolint:gosec // a directory of the test
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(secret))
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
func (s *sharer) stopping(ctx context.Context, stop allocator.Stop) <-chan error {
	done := make(chan error, 1)
	if stop.Stopped == nil {
		stop.Stopped = func(placement.Set) {}
	}
	go func() { done <- s.o.Allocator.Stop(ctx, stop) }()
	return done
}

// until waits for an identity.
func (s *sharer) until(is func(identity.Identity) bool) {
	for now := s.hub.Get(); !is(now.Identity); now = s.hub.Get() {
		<-s.hub.Changed(now.Version)
	}
}

func httpHooks() Hooks { return Hooks{DrainHTTP: true, DrainTimeout: time.Minute} }

func TestAPartOfTheWorkStopsWhenTheProgramSaysSo(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	s.publish(dividing(placement.Between(0, 15), placement.Set{}, 0))
	s.shows("0-15", "")
	s.says(409, "partitions=12&stop=1")
	s.publish(dividing(placement.Between(0, 15), placement.Of(12), 1))
	if p := s.shows("0-11,13-15", "12"); p.Stop != 1 {
		t.Errorf("the stop has the number %d", p.Stop)
	}
	s.says(409, "stop=1") // the id is not to stop
	s.says(204, "partitions=12&stop=1")
	must(t, <-s.stopping(t.Context(), allocator.Stop{Partitions: placement.Of(12), Number: 1}))
	s.publish(dividing(placement.Between(0, 11).Union(placement.Between(13, 15)), placement.Set{}, 1))
	s.shows("0-11,13-15", "")
	s.says(409, "partitions=12&stop=1")
}

// The program may take long with one partition.
func TestReportsOfSinglePartitionsCountOneByOne(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	s.publish(dividing(placement.Between(0, 15), placement.Between(12, 15), 1))
	told := make(chan placement.Set, 4)
	done := s.stopping(t.Context(), allocator.Stop{Partitions: placement.Between(12, 15), Number: 1, Stopped: func(set placement.Set) { told <- set }})
	for _, set := range []string{"13", "14-15", "12"} {
		s.says(204, "stop=1&partitions="+set)
		if got := <-told; got.String() != set {
			t.Errorf("%s has stopped, want %s", got, set)
		}
	}
	must(t, <-done)
}

// The process before this one told the program to stop, and it was told nothing else since.
func TestAProgramReportsToTheNextProcess(t *testing.T) {
	dir := t.TempDir()
	newSharer(t, dir, httpHooks()).publish(dividing(placement.Between(0, 15), placement.Of(12), 1))
	s := newSharer(t, dir, httpHooks())
	s.says(204, "partitions=12&stop=1")
	s.publish(dividing(placement.Between(0, 15), placement.Of(12), 2))
	must(t, <-s.stopping(t.Context(), allocator.Stop{Partitions: placement.Of(12), Number: 2}))
}

func TestALateReportForAStopThatWasCalledOffDoesNotCount(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	all := placement.Between(0, 15)
	s.publish(dividing(all, placement.Of(12), 1))
	ctx, callOff := context.WithCancel(t.Context())
	first := s.stopping(ctx, allocator.Stop{Partitions: placement.Of(12), Number: 1})
	callOff()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("Stop is %v", err)
	}
	s.publish(dividing(all, placement.Set{}, 1))
	s.shows("0-15", "")
	s.publish(dividing(all, placement.Of(12), 2))
	s.says(409, "partitions=12&stop=1")
	s.says(204, "partitions=12&stop=2")
	must(t, <-s.stopping(t.Context(), allocator.Stop{Partitions: placement.Of(12), Number: 2}))
}

// The drain of an id that was called off keeps its token.
func TestALateReportForAnEarlierDrainDoesNotCount(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	for number := 1; number <= 2; number++ {
		s.publish(held())
		s.publish(draining(0)) // the stop has no number yet
		s.publish(draining(number))
		if id := s.hub.Get(); id.Stop != number {
			t.Errorf("the drain has the number %d, want %d", id.Stop, number)
		}
	}
	s.says(409, "token=7&stop=1")
	s.says(204, "token=7&stop=2")
	s.publish(held())
	if id := s.hub.Get(); !id.Assigned() || id.Stop != 0 {
		t.Errorf("nothing is to stop, and the number is %d", id.Stop)
	}
}

// Without a drain in between, the work has not begun again.
func TestAReportThatComesAfterTheTimeoutCountsWhenTheProgramIsAskedAgain(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	s.publish(held())
	s.publish(draining(1))
	s.publish(draining(0)) // the timeout is over
	if id := s.hub.Get(); id.Stop != 1 {
		t.Errorf("the drain has the number %d", id.Stop)
	}
	s.says(204, "stop=1")
	s.publish(draining(2))
	must(t, <-s.stopping(t.Context(), allocator.Stop{All: true, Number: 2}))
}

// The receipt was removed. The program reports only while it sees that the state is draining.
func TestAProgramIsAskedWhateverTheReasonIs(t *testing.T) {
	s := newSharer(t, t.TempDir(), httpHooks())
	s.publish(held())
	s.publish(withdrawn(identity.StateLost))
	done := s.stopping(t.Context(), allocator.Stop{All: true, Number: 1, Lost: true})
	s.until(func(id identity.Identity) bool { return id.State == identity.StateDraining && id.Stop == 1 })
	s.publish(withdrawn(identity.StateLost)) // with another count, say
	s.says(204, "token=7&stop=1")
	must(t, <-done)
	if id := s.hub.Get(); id.State != identity.StateLost || id.Stop != 0 {
		t.Errorf("the work has stopped, and the identity is %+v", id)
	}
	if _, mayWork := s.mayWork(); mayWork {
		t.Error("the program is asked again")
	}
}

func TestWithoutAReporterADrainHasNoNumber(t *testing.T) {
	for _, hooks := range []Hooks{{}, {Drain: &hook.Command{}}} {
		a, _ := beginning(t, t.TempDir())
		must(t, a.numberStops(hooks))
		a.publish(held())
		a.publish(draining(1))
		if id := a.hub.Get().Identity; id != withdrawn(identity.StateDraining) {
			t.Errorf("the identity is %+v", id)
		}
	}
}

// Otherwise a late report about an earlier stop would count for a later one.
func TestTheNextProcessContinuesTheNumbers(t *testing.T) {
	for name, stop := range map[string]func(*sharer){
		"of some partitions": func(s *sharer) { s.publish(dividing(placement.Between(0, 15), placement.Of(12), 3)) },
		"of all work":        func(s *sharer) { s.publish(draining(3)) },
		"of lost work": func(s *sharer) {
			s.publish(withdrawn(identity.StateLost))
			if err := <-s.stopping(ended(t), allocator.Stop{All: true, Number: 3, Lost: true}); err == nil {
				t.Error("the work has stopped, and the program has not said so")
			}
		},
	} {
		dir := t.TempDir()
		s := newSharer(t, dir, httpHooks())
		s.publish(held())
		stop(s)
		if last := newSharer(t, dir, httpHooks()).o.Allocator.LastStop; last != 3 {
			t.Errorf("%s: the last stop has the number %d", name, last)
		}
	}
}

// The receipt that locks it may be removed.
func TestTheNextProcessKnowsFromTheFilesWhatWorkMayContinue(t *testing.T) {
	dir := t.TempDir()
	left := func(uid string) string {
		id := newSharer(t, dir, httpHooks()).o.Allocator.Left(uid)
		if id.State == "" {
			return "nothing"
		}
		return fmt.Sprintf("%d/%d: %s", id.ID, id.Token, id.Partitions.Owned().Union(id.Partitions.Stopping()))
	}
	s := newSharer(t, dir, httpHooks())
	for _, step := range []struct {
		shows identity.Identity
		want  string
	}{
		{dividing(placement.Between(0, 15), placement.Of(12), 1), "3/7: 0-15"},
		{dividing(placement.Between(0, 11), placement.Set{}, 1), "3/7: 0-11"},
		{withdrawn(identity.StateLost), "3/7: 0-11"},
		{withdrawn(identity.StateDraining), "3/7: 0-11"},
	} {
		s.publish(step.shows)
		if got := left(podUID); got != step.want {
			t.Errorf("after %+v work may go on under %s, want %s", step.shows, got, step.want)
		}
		if got := left("uid-2"); got != "nothing" {
			t.Errorf("another pod of the same name worked under %s, and that counts as work of this one", got)
		}
	}
}

// The program works on what the earlier process published, until this one knows what becomes of it.
func TestARestartDoesNotDisturbTheWork(t *testing.T) {
	dir := t.TempDir()
	s := newSharer(t, dir, httpHooks())
	s.publish(dividing(placement.Between(0, 15), placement.Set{}, 0))
	generation, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		t.Fatal(err)
	}
	again := newSharer(t, dir, httpHooks())
	again.shows("0-15", "")
	again.publish(dividing(placement.Between(0, 15), placement.Set{}, 0))
	if now, err := os.Readlink(filepath.Join(dir, "..data")); err != nil || now != generation {
		t.Errorf("the files were written again, %v", err)
	}
}

func TestWithoutAnIDNoPartitionIsShown(t *testing.T) {
	for _, withdraw := range []func(*sharer){
		func(s *sharer) {
			s.publish(dividing(placement.Of(1), placement.Set{}, 0).Without(identity.StateDraining))
		},
		func(s *sharer) { s.publish(dividing(placement.Of(1), placement.Set{}, 0).Without(identity.StateLost)) },
		func(s *sharer) { s.showFenced() },
	} {
		s := newSharer(t, t.TempDir(), httpHooks())
		s.publish(dividing(placement.Of(1), placement.Set{}, 0))
		withdraw(s)
		s.shows("", "")
		if _, err := os.Stat(filepath.Join(s.dir, "partitions")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is there: %v", err)
		}
	}
}

func TestADrainHookIsAskedAboutAPart(t *testing.T) {
	part := allocator.Stop{Partitions: placement.Of(12), Number: 3}
	var asked []string
	d, logged := newDrainer(false, func(_ context.Context, id identity.Identity, stop allocator.Stop) error {
		asked = append(asked, fmt.Sprintf("%d: %s by %d", id.ID, stop.Partitions, stop.Number))
		return errHook
	})
	if err := d.stop(t.Context(), part); !errors.Is(err, errHook) {
		t.Errorf("stop is %v", err)
	}
	if !slices.Equal(asked, []string{"3: 12 by 3"}) || len(*logged) > 0 {
		t.Errorf("asked %q, logged %q", asked, *logged)
	}
}

// The slot, and a part of the work, is kept, or given if that is so wanted.
func TestWhatBecomesOfAHookThatDoesNotReturn(t *testing.T) {
	for name, stop := range map[string]allocator.Stop{"a part": {Partitions: placement.Of(12), Number: 3}, "all": {All: true}} {
		for give, want := range map[bool]error{false: errDrainTimeout, true: nil} {
			synctest.Test(t, func(t *testing.T) {
				d, logged := newDrainer(give, never)
				begin := time.Now()
				err := d.stop(t.Context(), stop)
				if !errors.Is(err, want) || time.Since(begin) != d.timeout || len(*logged) != map[bool]int{true: 1}[give] {
					t.Errorf("%s, give %t: %v after %s; the log has %v", name, give, err, time.Since(begin), *logged)
				}
				if _, mayWork := d.mayWork(); !mayWork && !stop.All {
					t.Error("a part has stopped, and it counts as all")
				}
			})
		}
	}
}

// A hook that is told of partitions stops only the work on these.
func TestADrainCommandHearsWhatIsToStop(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	drain, err := hook.Parse(`/bin/sh -c 'echo "$IDALLOC_STOP:$IDALLOC_PARTITIONS_STOP" >>` + told + `'`)
	if err != nil {
		t.Fatal(err)
	}
	s := newSharer(t, t.TempDir(), Hooks{Drain: drain})
	s.publish(dividing(placement.Between(0, 15), placement.Of(12), 1))
	stops := []allocator.Stop{{Partitions: placement.Of(12), Number: 1}, {All: true, Partitions: placement.Between(0, 11), Number: 2}}
	for _, stop := range stops {
		if stop.All {
			s.publish(draining(stop.Number))
		}
		must(t, <-s.stopping(t.Context(), stop))
	}
	if b, err := os.ReadFile(told); err != nil || string(b) != "1:12\n2:\n" { //nolint:gosec // a file of the test
		t.Errorf("the hook was told %q, %v", b, err)
	}
}

func TestACommandHasStoppedWhenTheFilesDoNotNameThePart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		o := optionsOf(dir)
		o.MoveDelay = time.Hour
		a := anAgent(t, o)
		c := &runWork{agent: a, follower: child.NewFollower(child.Options{OnPartitions: child.RestartOnPartitions, Log: logr.Discard()})}
		a.work = c
		a.publish(dividing(placement.Between(0, 3), placement.Of(3), 1))
		begin := time.Now()
		err := c.stop(t.Context(), allocator.Stop{Partitions: placement.Of(3), Number: 1})
		if took := time.Since(begin); err != nil || took != time.Hour {
			t.Errorf("stop is %v after %s: other containers read the files", err, took)
		}
		if id, err := identity.Read(dir); err != nil || id.Partitions.Owned().String() != "0-2" {
			t.Errorf("the files say %+v, %v", id, err)
		}
	})
}
