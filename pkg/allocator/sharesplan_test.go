package allocator

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition/placement"
	"github.com/idalloc/idalloc/test/apifake"
)

// holderOf is a process that has held slot 0 of this owner for an hour.
func holderOf(owner store.Owner) (*holding, *testclock.FakeClock) {
	a, boot := sharingPod(), &handClock{at: time.Hour}
	clk := testclock.NewFakeClock(time.UnixMilli(1795219200123))
	a.clock, a.pace = clk, pace.New(func() float64 { return 0 })
	a.quarantined, a.departures = quarantines{now: boot.now, log: logr.Discard()}, departures{now: boot.now}
	locks := owner.Record.State.Partitions.Owners[0]
	own := assignment.Receipt{UID: string(a.pod.UID), Owner: a.ref.String(), Epoch: 9, Partitions: &locks}
	a.pod.Annotations = map[string]string{assignment.ReceiptKey: own.Encode()}
	a.held = &held{id: 0, token: 9, view: owner, since: clk.Now().Add(-time.Hour)}
	return &holding{Allocator: a, retry: a.pace.Backoff()}, clk
}

// two is a workload of two pods with two partitions each, and this time for a fail-over.
func two(failoverAfter time.Duration) store.Owner {
	o := owning(placement.Owners{0: placement.Between(0, 1), 1: placement.Between(2, 3)})
	o.UID, o.Record.Present, o.Record.Sealed = "o", true, true
	o.Record.State.UIDs[1] = "ub"
	o.Wish = assignment.Wish{Count: 4, Strategy: placement.NameSticky, FailoverAfter: failoverAfter}
	return o
}

// Until time alone has brought about more, nothing wakes the process up.
func TestAHolderWakesUpForTheFirstThingThatTimeBringsAbout(t *testing.T) {
	const after = 30 * time.Second
	for name, tc := range map[string]struct {
		failoverAfter time.Duration
		change        func(*holding, *testclock.FakeClock, *store.Owner)
		want          time.Duration
	}{
		"nothing":             {failoverAfter: after, want: -1},
		"no fail-over at all": {failoverAfter: -1, change: func(h *holding, _ *testclock.FakeClock, _ *store.Owner) { h.vacancies.since = map[int]time.Time{1: {}} }, want: -1},
		"it has just started": {failoverAfter: after, change: func(h *holding, c *testclock.FakeClock, _ *store.Owner) {
			h.held.since = c.Now().Add(-10 * time.Second)
		}, want: 20 * time.Second},
		"an id has no holder": {failoverAfter: after, change: func(h *holding, c *testclock.FakeClock, _ *store.Owner) {
			h.vacancies.since = map[int]time.Time{1: c.Now().Add(-25 * time.Second)}
		}, want: 5 * time.Second},
		"a plan was in vain": {failoverAfter: after, change: func(h *holding, c *testclock.FakeClock, _ *store.Owner) {
			h.sharing.planned = &outdated{until: c.Now().Add(7 * time.Second)}
		}, want: 7 * time.Second},
		"and long ago": {failoverAfter: after, change: func(h *holding, c *testclock.FakeClock, _ *store.Owner) {
			h.sharing.planned = &outdated{until: c.Now().Add(-7 * time.Second)}
		}, want: -1},
		"an id in quarantine": {failoverAfter: after, change: func(h *holding, _ *testclock.FakeClock, o *store.Owner) { quarantine(h, o) }, want: assignment.QuarantineTime(strict)},
		"whichever comes first": {
			failoverAfter: after, want: 4 * time.Second,
			change: func(h *holding, c *testclock.FakeClock, o *store.Owner) {
				quarantine(h, o)
				h.sharing.planned = &outdated{until: c.Now().Add(4 * time.Second)}
				h.vacancies.since = map[int]time.Time{1: c.Now().Add(-25 * time.Second)}
				h.held.since = c.Now().Add(-10 * time.Second)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := two(tc.failoverAfter)
			h, clk := holderOf(view)
			if tc.change != nil {
				tc.change(h, clk, &view)
			}
			if got := h.now(view).next; got != tc.want {
				t.Errorf("it wakes up in %s, want %s", got, tc.want)
			}
		})
	}
}

// quarantine has the holder see a quarantine of a slot.
func quarantine(h *holding, o *store.Owner) {
	o.Record.State.FenceAfter = strict
	o.Record.State.Quarantine = o.Record.State.Quarantine.With(5, 5, 3)
	h.quarantined.see(*o, h.clock.Now())
}

// A plan costs the API server two lists of pods.
func TestAPlanForPartitionsIsDueOnlyIfItWouldChangeSomething(t *testing.T) {
	view := two(30 * time.Second)
	h, clk := holderOf(view)
	due := func() bool { return h.due(view, h.now(view)) }
	if due() {
		t.Error("all is well, and a plan is due")
	}
	h.vacancies.see(view, clk.Now())
	h.vacancies.gone(1, "b", "ub", clk.Now())
	clk.Step(30*time.Second - 1)
	if due() {
		t.Error("a plan is due before the fail-over")
	}
	clk.Step(1)
	if !due() {
		t.Error("a pod is gone for long, and nobody plans")
	}
	h.plannedInVain(view)
	if due() {
		t.Error("the same plan is due again")
	}
	clk.SetTime(h.sharing.planned.until)
	if !due() {
		t.Error("it is never due again")
	}
	view.PartitionTrust = assignment.Unreadable
	if due() {
		t.Error("a plan is due for what this process cannot read")
	}
}

func TestAPlanForPartitionsIsMadeAgainAfterAnError(t *testing.T) {
	state := lax(me)
	owner := apifake.Assigned(1, state)
	annotations := owner.GetAnnotations()
	annotations[assignment.PartitionCountKey] = "4"
	owner.SetAnnotations(annotations)
	none := placement.Set{}
	server := shop(t, owner, withReceipt(assignment.Receipt{Epoch: epoch, Partitions: &none}))
	a := startedOn(t, server, Options{Partitions: &Partitions{Publish: func(Shares) {}}})
	from, err := a.readOwner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.follow(t.Context())()
	a.held = &held{id: 0, token: epoch, view: from, since: a.clock.Now().Add(-time.Hour)}
	h := &holding{Allocator: a, retry: a.pace.Backoff()}
	if !h.due(from, h.now(from)) {
		t.Error("the partitions have no owners, and nobody plans")
	}
	refuse := func(what string) {
		server.Before(func(w http.ResponseWriter, r *http.Request) bool {
			refused := what != "" && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, what)
			if refused {
				apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "no")
			}
			return refused
		})
	}
	for _, what := range []string{"/" + apifake.Worker, "/pods"} {
		before := h.retry.Current()
		if refuse(what); h.planShares(t.Context()) != nil || h.retry.Current() <= before || h.sharing.planned != nil {
			t.Errorf("%s is refused: it waits %s longer, and takes the plan for one in vain: %t", what, h.retry.Current(), h.sharing.planned != nil)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	done := errors.New("done")
	if cancel(done); !errors.Is(h.planShares(ended), done) {
		t.Error("it goes on although the process is to end")
	}
	refuse("")
	if err := h.planShares(t.Context()); err != nil || h.retry.Current() != 0 {
		t.Errorf("it returns %v, and waits %s longer", err, h.retry.Current())
	}
	if row := a.held.view.Record.State.Partitions; row == nil || row.Owners[0].Len() != 4 {
		t.Errorf("the newest view has %+v", row)
	}
	if h.sharing.planned != nil {
		t.Error("the plan was in vain")
	}
	if err := h.planShares(t.Context()); err != nil || h.sharing.planned == nil {
		t.Errorf("%v; a plan that changes nothing was in vain: %t", err, h.sharing.planned != nil)
	}
	succeed(server)
	if err := h.planShares(t.Context()); !errors.Is(err, ErrPodGone) {
		t.Errorf("the pod is gone, and it returns %v", err)
	}
}
