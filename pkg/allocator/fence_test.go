package allocator

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// handClock is moved by hand.
type handClock struct{ at time.Duration }

func (c *handClock) now() time.Duration { return c.at }

// BootTime and BootWait make it a boottime.Source.
func (c *handClock) BootTime() time.Duration                 { return c.at }
func (c *handClock) BootWait(time.Duration, <-chan struct{}) {}

func TestLease(t *testing.T) {
	const length = 4 * time.Second
	start := func() (*handClock, *lease) {
		c := &handClock{at: time.Hour}
		return c, newLease(length, c.at, c.now)
	}
	t.Run("lasts from the sending of the request", func(t *testing.T) {
		c := &handClock{at: time.Hour}
		sent := c.at - time.Second
		l := newLease(length, sent, c.now)
		if l.deadline() != sent+length {
			t.Errorf("the deadline is %s, want %s", l.deadline(), sent+length)
		}
		c.at = sent + length - 1
		if l.expired() {
			t.Error("it expired before its time")
		}
		c.at = sent + length
		if !l.expired() {
			t.Error("it did not expire in time")
		}
	})
	t.Run("is over at once when the answer took longer than it lasts", func(t *testing.T) {
		c := &handClock{at: time.Hour}
		if l := newLease(length, c.at-length, c.now); !l.expired() {
			t.Error("it did not expire")
		}
	})
	t.Run("is renewed from the sending, not from the answer", func(t *testing.T) {
		c, l := start()
		c.at += 3 * time.Second
		sent := c.at - time.Second
		l.renew(sent)
		if l.deadline() != sent+length {
			t.Errorf("the deadline is %s, want %s", l.deadline(), sent+length)
		}
	})
	t.Run("is never shortened by a late answer to an early request", func(t *testing.T) {
		c, l := start()
		c.at += 2 * time.Second
		l.renew(c.at)
		until := l.deadline()
		l.renew(c.at - time.Second)
		if l.deadline() != until {
			t.Errorf("the deadline moved from %s to %s", until, l.deadline())
		}
	})
	t.Run("stays over although nobody looked when it ended", func(t *testing.T) {
		c, l := start()
		c.at += length
		l.renew(c.at) // an answer that came at the deadline
		if !l.expired() {
			t.Error("it was renewed after its end")
		}
		c.at -= time.Second
		if !l.expired() {
			t.Error("a clock that stepped back brought it back")
		}
	})
}

// Whatever is asked in whatever order: once over, over; never over before the last renewed deadline;
// always over at it.
func TestLeaseIsSticky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := time.Duration(rapid.IntRange(1, 20).Draw(t, "length"))
		c := &handClock{}
		l := newLease(length, 0, c.now)
		until, over := length, false
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			c.at += time.Duration(rapid.IntRange(0, 8).Draw(t, "passes"))
			over = over || c.at >= until
			if rapid.Bool().Draw(t, "renew") {
				sent := c.at - time.Duration(rapid.IntRange(0, 8).Draw(t, "ago"))
				l.renew(sent)
				if !over {
					until = max(until, sent+length)
					over = c.at >= until
				}
			}
			if got := l.expired(); got != over {
				t.Fatalf("at %d, deadline %d: expired() = %t, want %t", c.at, until, got, over)
			}
		}
	})
}

func TestFenceOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Options
		good bool
	}{
		"off":                        {Options{}, true},
		"the shortest":               {Options{FenceAfter: MinFenceAfter}, true},
		"below it":                   {Options{FenceAfter: MinFenceAfter - 1}, false},
		"negative":                   {Options{FenceAfter: -time.Second}, false},
		"the longest":                {Options{FenceAfter: assignment.MaxFenceAfter}, true},
		"beyond it":                  {Options{FenceAfter: assignment.MaxFenceAfter + 1}, false},
		"half of it to stop in":      {Options{FenceAfter: 10 * time.Second, FenceLead: 5 * time.Second}, true},
		"more than half to stop in":  {Options{FenceAfter: 10 * time.Second, FenceLead: 5*time.Second + 1}, false},
		"a negative time to stop in": {Options{FenceAfter: 10 * time.Second, FenceLead: -1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.o.checkFence(); (err == nil) != tc.good {
				t.Errorf("checkFence() = %v", err)
			}
		})
	}
}

func TestTheDeadlineOfWhatIsHeld(t *testing.T) {
	boot := &handClock{at: time.Hour}
	off := &strictMode{boot: boot}
	if _, deadline := off.left(); !off.begin(0) || deadline || off.over() {
		t.Error("without strict mode there is a deadline")
	}
	var told []time.Duration
	s := &strictMode{boot: boot, after: 30 * time.Second, lead: 10 * time.Second, tell: func(by time.Duration) { told = append(told, by) }}
	start := boot.BootTime()
	if s.begin(start - 20*time.Second) {
		t.Error("a confirmation that was asked for too long ago counts")
	}
	if _, deadline := s.left(); deadline {
		t.Error("and leaves a deadline")
	}
	if !s.begin(start - 5*time.Second) {
		t.Fatal("a fresh one does not count")
	}
	boot.at += time.Second
	s.renew(start)
	if left, ok := s.left(); !ok || left != 19*time.Second {
		t.Errorf("%s is left, %t, want 19s: less by the time that the work needs to stop", left, ok)
	}
	s.stop()
	boot.at += 19 * time.Second
	if !s.over() {
		t.Error("it is not over in time")
	}
	s.renew(start + 15*time.Second)
	if !s.over() {
		t.Error("what is over comes back")
	}
	boot.at += time.Minute
	s.stop()
	if want := []time.Duration{start + 11*time.Second, start + 30*time.Second}; !slices.Equal(told, want) {
		t.Errorf("the work is to stop by %v, want %v: at once, but never later than the deadline", told, want)
	}
}

// leapClock leaps to the end of each wait at once.
type leapClock struct {
	mu sync.Mutex
	at time.Duration
}

func (c *leapClock) BootTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *leapClock) BootWait(until time.Duration, _ <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = max(c.at, until)
}

func (c *leapClock) pass(d time.Duration) { c.BootWait(c.BootTime()+d, nil) }

// still is a clock that stands. It tells of its waits, which end when nobody wants them any more.
type still struct {
	handClock
	waits chan time.Duration
}

func newStill() *still { return &still{handClock{at: time.Hour}, make(chan time.Duration, 10)} }

func (c *still) BootWait(until time.Duration, done <-chan struct{}) {
	c.waits <- until
	<-done
}

// strictOn is a strict process on a server, which holds slot 0.
func strictOn(t *testing.T, server *apifake.Server, boot boottime.Source, lead time.Duration) (a *Allocator, told *[]time.Duration, happened *heard) {
	t.Helper()
	told, happened = &[]time.Duration{}, &heard{}
	a = startedOn(t, server, Options{FenceAfter: strict, FenceLead: lead, Fenced: func(by time.Duration) { *told = append(*told, by) }})
	a.strict.boot, a.happened = boot, event.Observers{happened}
	owner, err := a.readOwner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.held = &held{id: 0, token: epoch, view: owner}
	if !a.strict.begin(boot.BootTime()) {
		t.Fatal("the deadline has passed")
	}
	return a, told, happened
}

func readsOwner(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+apifake.Worker)
}

// Only an answer that confirms the id moves the deadline, and it counts from when it was asked for.
func TestContactMovesTheDeadline(t *testing.T) {
	const reads, took = 12, time.Second
	short := naming(me, epoch)
	short.FenceAfter = strict - time.Second
	for name, tc := range map[string]struct {
		now     *unstructured.Unstructured // nil for one that confirms the id
		refused bool
		lasts   bool
	}{
		"the map confirms the id":                     {lasts: true},
		"the API server refuses":                      {refused: true},
		"the map gives the id to another pod":         {now: apifake.Assigned(1, naming(other, epoch))},
		"somebody edited the map":                     {now: edited(naming(me, epoch))},
		"others would not wait for this process":      {now: apifake.Assigned(1, short)},
		"nobody tracks the map, and it is an old one": {now: apifake.Untracked(apifake.Assigned(1, naming(me, epoch-1)))},
	} {
		t.Run(name, func(t *testing.T) {
			server, boot := shop(t, apifake.Assigned(1, naming(me, epoch)), lockedAt(me, 0)), &leapClock{at: time.Hour}
			a, _, happened := strictOn(t, server, boot, 0)
			if tc.now != nil {
				server.Put(tc.now)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l, n := a.strict.lease.Load(), 0
			first := l.deadline()
			var sent []time.Duration
			server.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if !readsOwner(r) {
					return false
				}
				sent = append(sent, boot.BootTime())
				boot.pass(took)
				if n++; n > reads && tc.lasts {
					cancel()
					<-r.Context().Done() // no answer
					return true
				}
				if tc.refused {
					apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "no")
				}
				return tc.refused
			})
			a.strict.keepContact(ctx, &a.connection, a.mine(), l)
			if tc.lasts {
				checkContact(t, l, sent[:reads], took, *happened)
				return
			}
			if gap := sent[1] - sent[0]; gap > strict/6 {
				t.Errorf("it tries again after %s", gap)
			}
			if l.deadline() != first || !l.expired() || len(*happened) > 0 {
				t.Errorf("the deadline is %s, and was %s; it tells %v", l.deadline(), first, *happened)
			}
		})
	}
}

// checkContact checks what became of requests that were all answered as they should.
func checkContact(t *testing.T, l *lease, sent []time.Duration, took time.Duration, happened heard) {
	t.Helper()
	if last := sent[len(sent)-1] + strict; l.deadline() != last || l.expired() {
		t.Errorf("the deadline is %s, want %s", l.deadline(), last)
	}
	if want := (event.Contact{Age: took}); len(happened) != len(sent) || happened[0] != want {
		t.Errorf("it tells %v", happened)
	}
	for i, at := range sent[1:] {
		if gap := at - sent[i]; gap > strict/4 || gap < strict/5 {
			t.Errorf("it asks again after %s", gap)
		}
	}
}

// The work is told, whoever notices the deadline first.
func TestWorkIsToldToStopByTheDeadline(t *testing.T) {
	const lead = 10 * time.Second
	mine := apifake.Assigned(1, naming(me, epoch))
	t.Run("without contact", func(t *testing.T) {
		boot := &leapClock{at: time.Hour}
		server := shop(t, mine, lockedAt(me, 0))
		a, told, _ := strictOn(t, server, boot, lead)
		server.Before(func(w http.ResponseWriter, _ *http.Request) bool {
			apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "no")
			return true
		})
		fenced, stop := a.strict.guard(t.Context(), &a.connection, a.mine())
		<-fenced
		stop()
		if want := []time.Duration{time.Hour + strict}; !slices.Equal(*told, want) || !a.Fenced() {
			t.Errorf("told %v, want %v", *told, want)
		}
	})
	t.Run("when the loop has noticed", func(t *testing.T) {
		boot := newStill()
		a, told, _ := strictOn(t, shop(t, mine, lockedAt(me, 0)), boot, lead)
		boot.at += strict - lead
		fenced, stop := a.strict.guard(t.Context(), &a.connection, a.mine())
		stop()
		select {
		case <-fenced:
		default:
			t.Error("it is not fenced")
		}
		if want := []time.Duration{time.Hour + strict}; !slices.Equal(*told, want) {
			t.Errorf("told %v, want %v", *told, want)
		}
	})
	t.Run("not before", func(t *testing.T) {
		boot := newStill()
		a, told, happened := strictOn(t, shop(t, mine, lockedAt(me, 0)), boot, lead)
		fenced, stop := a.strict.guard(t.Context(), &a.connection, a.mine())
		waits := []time.Duration{<-boot.waits, <-boot.waits}
		stop()
		if deadline := time.Hour + strict - lead; !slices.Contains(waits, deadline) {
			t.Errorf("it waits until %v, want until %s", waits, deadline)
		}
		if len(*happened) != 1 {
			t.Errorf("it seeks contact meanwhile: %v", *happened)
		}
		select {
		case <-fenced:
			t.Error("it is fenced")
		default:
		}
		if len(*told) > 0 || a.Fenced() {
			t.Errorf("told %v", *told)
		}
	})
	t.Run("not at all without strict mode", func(t *testing.T) {
		a := startedOn(t, shop(t, mine, lockedAt(me, 0)), Options{})
		fenced, stop := a.strict.guard(t.Context(), &a.connection, store.Holding{})
		stop()
		if fenced != nil || a.Fenced() {
			t.Error("it may be fenced")
		}
	})
}

func TestAFencedProcessSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		owner  *unstructured.Unstructured
		reason string
	}{
		"the API server is away":  {apifake.Assigned(1, naming(me, epoch)), "no answer came in time"},
		"somebody edited the map": {edited(naming(me, epoch)), "a map that somebody else wrote confirms no id: "},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, happened := strictOn(t, shop(t, tc.owner, lockedAt(me, 0)), &handClock{at: time.Hour}, 0)
			a.wrote = true
			(&holding{Allocator: a}).fence()
			fenced, is := (*happened)[0].(event.Fenced)
			if !is || fenced.Epoch != epoch || fenced.FenceAfter != strict || !strings.HasPrefix(fenced.Reason, tc.reason) {
				t.Errorf("it tells %+v", (*happened)[0])
			}
			if a.held != nil || a.current.State != identity.StateFenced || a.wrote {
				t.Errorf("it is %s, holds the id: %t, and trusts its receipt: %t", a.current.State, a.held != nil, a.wrote)
			}
		})
	}
}

func TestOnlyAStrictProcessTellsOfContact(t *testing.T) {
	for fenceAfter, want := range map[time.Duration]heard{0: nil, strict: {event.Contact{Age: time.Second, Overdue: strict / 2}}} {
		var got heard
		a := &Allocator{connection: connection{happened: event.Observers{&got}}, strict: strictMode{boot: &handClock{at: time.Hour}, after: fenceAfter}}
		a.tellContact(time.Hour - time.Second)
		if !slices.Equal(got, want) {
			t.Errorf("it tells %v, want %v", got, want)
		}
	}
}
