package allocator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
	"github.com/idalloc/idalloc/test/apifake"
)

func newContact() (*connection, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(noon)
	return &connection{clock: clk, log: logr.Discard(), pace: pace.New(func() float64 { return 0.5 }), tellStale: func(bool) {}}, clk
}

// An API server that has just started refuses everything until it has read its roles.
func TestAMissingPermissionIsDoubtedForAWhile(t *testing.T) {
	get := fmt.Errorf("wrapped: %w", &store.ForbiddenError{Verb: "get", Resource: "pods"})
	patch := &store.ForbiddenError{Verb: "patch", Resource: "pods"}
	type refused struct {
		after time.Duration
		err   error
		want  bool
	}
	for name, refusals := range map[string][]refused{
		"three times, and for five seconds": {{0, get, true}, {time.Second, get, true}, {3 * time.Second, get, true}, {time.Second, get, false}},
		"twice, however long it took":       {{0, get, true}, {10 * time.Second, get, true}, {time.Second, get, false}},
		"another one is doubted anew":       {{0, get, true}, {10 * time.Second, get, true}, {0, patch, true}, {6 * time.Second, patch, true}, {0, patch, false}},
		"so is one after a long while":      {{0, get, true}, {6 * time.Second, get, true}, {16 * time.Second, get, true}, {6 * time.Second, get, true}, {0, get, false}},
	} {
		c, clk := newContact()
		for i, r := range refusals {
			clk.Step(r.after)
			if got := c.temporary(r.err); got != r.want {
				t.Errorf("%s: refusal %d is doubted: %t", name, i+1, got)
			}
		}
	}
	c, _ := newContact()
	if !c.temporary(store.ErrConflict) || c.temporary(errors.New("no such field")) {
		t.Error("an error that is no refusal is not judged as package store does")
	}
}

// The same error is told once, whatever it is repeated for, and contact is lost and found once.
func TestAFailureIsToldOnce(t *testing.T) {
	c, _ := newContact()
	var logged []string
	c.log = funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
	var stale []bool
	c.tellStale = func(s bool) { stale = append(stale, s) }
	away := fmt.Errorf("%w: connection refused", store.ErrNoAnswer)
	for range 3 {
		c.unreachable(away)
	}
	c.unreachable(store.ErrConflict)
	c.setStale(false)
	c.setStale(false)
	if len(logged) != 2 || !strings.Contains(logged[0], "connection refused") {
		t.Errorf("the log has %v", logged)
	}
	if !slices.Equal(stale, []bool{true, false}) {
		t.Errorf("told of contact: %v", stale)
	}
}

// A lack of permission is somebody's mistake, so it stands in the log as an error, once. A server that is away for a moment is news.
func TestALackOfPermissionIsLoggedAsAnError(t *testing.T) {
	refused := &store.ForbiddenError{Verb: "patch", Resource: "deployments.apps", Err: errors.New("RBAC says no")}
	for name, tc := range map[string]struct {
		err     error
		asError bool
	}{
		"forbidden":            {refused, true},
		"forbidden, wrapped":   {fmt.Errorf("plan: %w", refused), true},
		"no answer":            {fmt.Errorf("%w: connection refused", store.ErrNoAnswer), false},
		"somebody was quicker": {store.ErrConflict, false},
	} {
		c, _ := newContact()
		var logged []string
		c.log = funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
		c.unreachable(tc.err)
		c.unreachable(tc.err)
		if len(logged) != 1 || strings.Contains(logged[0], `"error"=`) != tc.asError {
			t.Errorf("%s: the log has %q, want one line, as an error: %t", name, logged, tc.asError)
		}
	}
}

func TestALoopThatIsStuckIsNotHealthy(t *testing.T) {
	c, clk := newContact()
	c.markBusy()
	clk.Step(2 * time.Minute)
	if err := c.healthy(); err != nil {
		t.Errorf("after two minutes: %v", err)
	}
	clk.Step(time.Second)
	if c.healthy() == nil {
		t.Error("it has been at one thing for longer than its requests may take")
	}
	c.markAtRest()
	clk.Step(time.Hour)
	if err := c.healthy(); err != nil {
		t.Errorf("to wait is no failure: %v", err)
	}
}

func TestWhatIsRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		errs []error // of one try after the other
		want error
	}{
		"until it succeeds":              {[]error{store.ErrConflict, store.ErrAmbiguous, store.ErrNoAnswer, nil}, nil},
		"not what repeating cannot cure": {[]error{store.ErrConflict, store.ErrGone}, store.ErrGone},
	} {
		c, clk := newContact()
		done := make(chan error, 1)
		tries := 0
		go func() {
			done <- c.persist(t.Context(), "try", func() error {
				tries++
				return tc.errs[tries-1]
			})
		}()
		for waiting := true; waiting; {
			select {
			case err := <-done:
				waiting = false
				if !errors.Is(err, tc.want) || tries != len(tc.errs) {
					t.Errorf("%s: %v after %d tries", name, err, tries)
				}
			default:
				if clk.HasWaiters() {
					clk.Step(pace.MaxDelay)
				}
			}
		}
	}
	c, _ := newContact()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("told to stop"))
	err := c.persist(ctx, "write the receipt", func() error { return store.ErrNoAnswer })
	if !errors.Is(err, store.ErrNoAnswer) || !strings.Contains(err.Error(), "could not write the receipt: told to stop") {
		t.Errorf("%v", err)
	}
}

// A stream that is not permitted tries again seldom, so its refusals are far apart.
func TestRefusalsOfAStreamThatHaveLastedAreNotDoubtedAgain(t *testing.T) {
	c, clk := newContact()
	refused := store.Forbidden("watch", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "ns", "worker", errors.New("no"))
	began := clk.Now()
	clk.Step(forbiddenGrace)
	if err := c.refused.by(watch.Denial{Err: refused.Err, Verb: "watch", First: began, Last: clk.Now()}, refused); c.temporary(err) {
		t.Error("a stream was refused for five seconds, and that is taken for a mistake")
	}
	if c, _ := newContact(); !c.temporary(refused) {
		t.Error("a first refusal is not taken for a mistake")
	}
}

// Before there is a pod and an owner, nobody but the observer can be told.
func TestAnAPIServerThatIsAwayAtTheStartIsTold(t *testing.T) {
	server := apifake.New(t)
	server.Put(apifake.Owner(1))
	server.Put(apifake.Holding("worker-0", 0, 1795219000007))
	requests := 0
	server.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		if requests++; requests > 2 {
			return false
		}
		apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd is away")
		return true
	})
	s, err := store.New(server.Config(), "", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	var told observed
	if _, err := New(t.Context(), Options{Store: s, Pod: "worker-0", Namespace: apifake.Namespace, Log: logr.Discard(), Observer: &told}); err != nil {
		t.Fatal(err)
	}
	if told.text != "away back " {
		t.Errorf("told: %s", told.text)
	}
}

type observed struct{ text string }

func (o *observed) Observe(e event.Event) {
	switch e.(type) {
	case event.Away:
		o.text += "away "
	case event.Back:
		o.text += "back "
	}
}
