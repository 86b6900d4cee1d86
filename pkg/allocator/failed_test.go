package allocator

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// withFailures returns an Allocator whose pod's receipt counts n failures, and its clock.
func withFailures(n int) (*Allocator, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(time.UnixMilli(1795219200123))
	a := &Allocator{connection: connection{clock: clk, began: clk.Now(), pace: pace.New(func() float64 { return 0.999 })}}
	a.server, a.pod = &a.connection, &metav1.PartialObjectMetadata{}
	a.pod.UID = "u"
	r := assignment.Receipt{UID: "u", Owner: a.ref.String(), Waits: true, Failed: n}
	a.pod.Annotations = map[string]string{assignment.ReceiptKey: r.Encode()}
	return a, clk
}

func TestAFailureIsAnEndSoonAfterTheTakeThatNobodyAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		lasted   time.Duration
		byItself bool
		want     int
	}{
		"by itself and soon":            {time.Second, true, 3},
		"told to, and soon":             {time.Second, false, 2},
		"by itself, when it had lasted": {10 * time.Minute, true, 0},
		"told to, when it had lasted":   {10 * time.Minute, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, clk := withFailures(2)
			a.held = &held{since: clk.Now()}
			clk.Step(tc.lasted)
			if got := a.failures(tc.byItself); got != tc.want {
				t.Errorf("%d failures, want %d", got, tc.want)
			}
		})
	}
}

func TestStandsBackLongerWithEachFailure(t *testing.T) {
	before := time.Duration(0)
	for n := 1; n <= 5; n++ {
		a, _ := withFailures(n)
		wait := a.standBack()
		if base := minStandBack << (n - 1); wait <= before || wait < base || wait > base*4/3 {
			t.Errorf("after %d failures it waits %s", n, wait)
		}
		before = wait
	}
	a, clk := withFailures(100)
	if wait := a.standBack(); wait < maxStandBack || wait > maxStandBack*4/3 {
		t.Errorf("after many failures it waits %s", wait)
	}
	clk.Step(maxStandBack * 4 / 3)
	if wait := a.standBack(); wait > 0 {
		t.Errorf("its time has come, and it waits %s", wait)
	}
	if a, _ := withFailures(0); a.standBack() != 0 {
		t.Error("a pod that did not fail stands back")
	}
}

func TestFailuresAreRememberedWithoutASlot(t *testing.T) {
	a, _ := withFailures(2)
	if r := a.noSlotReceipt(); r.Locks() || r.Failures() != 2 {
		t.Errorf("the receipt is %+v", r)
	}
	if a, _ := withFailures(0); a.noSlotReceipt() != nil {
		t.Error("there is nothing to remember, and a receipt")
	}
}

// The work of a process that was fenced may go on for a while: it stops by a deadline that nobody else waits for.
func TestASlotWhoseWorkMayGoOnIsNotGivenBack(t *testing.T) {
	a, clk := withFailures(0)
	a.log, a.o.Pod, a.o.DiesWithProcess, a.announce = logr.Discard(), "w", true, func(identity.Identity) {}
	r := assignment.Receipt{UID: "u", Owner: a.ref.String(), ID: 0, Epoch: clk.Now().UnixMilli()}
	a.pod.Annotations = map[string]string{assignment.ReceiptKey: r.Encode()}
	owner := clean(store.Deployment, 1, 0, store.Rollout{Progress: store.Progress{Replicas: 2}})
	owner.Record.State.Slots[0], owner.Record.State.UIDs = "w", assignment.Slots{0: assignment.ShortUID("u")}
	a.held = &held{id: 0, token: r.Epoch, view: owner}
	h := &holding{Allocator: a}
	h.fence()
	defer func() {
		if recover() != nil { // there is no server
			t.Error("it asks who made room for it")
		}
	}()
	if given, err := (&claimer{Allocator: a}).giveBack(t.Context(), owner); given || err != nil {
		t.Errorf("given back: %t, %v", given, err)
	}
}
