package reconciler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// board is an API server that keeps the Events.
type board struct{ events []string }

func (b *board) RoundTrip(r *http.Request) (*http.Response, error) {
	var event struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &event)
	}
	b.events = append(b.events, event.Reason+": "+event.Message)
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r,
	}, err
}

// pass returns one that leaves its Events there.
func (b *board) pass(t *testing.T, clk clock.WithTicker) *pass {
	t.Helper()
	s, err := store.New(&rest.Config{Host: "http://api.invalid", Transport: b}, clk)
	if err != nil {
		t.Fatal(err)
	}
	p := passOf(t, nil)
	p.store, p.told, p.world.Now = s, expiring.NewExpiringWithClock(clk), clk.Now()
	return p
}

// of returns what passes say of an owner.
func (b *board) of(t *testing.T, owner func(*store.Owner), d decision.Decision) []string {
	t.Helper()
	p := b.pass(t, clock.RealClock{})
	owner(&p.owner)
	for range 2 { // a pass comes for each change
		p.tell(t.Context(), d)
	}
	return b.events
}

func TestAnAnnotationThatMakesNoSenseIsTold(t *testing.T) {
	for text, want := range map[string][]string{
		"25%": nil,
		"x":   {`AnnotationIgnored: annotation idalloc.dev/evict: not a number, a percentage or never: "x": the value is invalid and is ignored`},
	} {
		got := (&board{}).of(t, func(o *store.Owner) { o.Annotations = map[string]string{assignment.EvictKey: text} }, decision.Decision{})
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	// Agents do not see the workload, so the controller tells what they cannot.
	got := (&board{}).of(t, func(o *store.Owner) {
		o.Wish = assignment.DecodeWish(map[string]string{assignment.PartitionCountKey: "many"})
	}, decision.Decision{})
	if want := []string{`AnnotationIgnored: annotation idalloc.dev/partition-count: not a number: "many": the value is invalid and is ignored`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestIDsThatRestAreToldOnceEach(t *testing.T) {
	const many = 20
	rests := make([]decision.Rest, 0, many)
	for id := range many {
		rests = append(rests, decision.Rest{ID: id, Until: time.Date(2026, 3, 1, 12, 0, 7, 0, time.UTC)})
	}
	b := &board{}
	p := b.pass(t, clock.RealClock{})
	for range many {
		p.tell(t.Context(), decision.Decision{Rests: rests})
	}
	const first = "IDRests: id 0 rests until 2026-03-01T12:00:07Z, because its last pod ended a short time ago, or before idalloc-controller looked (annotation idalloc.dev/reuse-after)"
	if len(b.events) != many || b.events[0] != first {
		t.Errorf("%d Events, the first %q", len(b.events), b.events)
	}
}

func TestPodsThatWaitForTheirCountAreToldAfterAMinute(t *testing.T) {
	for stage, want := range map[decision.Stage]string{
		decision.StageStarting: "CountWaits: 2 pods started with another count, such as b: its turn to restart has not ended, because it is not available or has not restarted: see why, or set the count back",
		decision.StageQueued:   "CountWaits: 2 pods started with another count, such as b: it waits until more pods are available: see why others are not, or raise annotation idalloc.dev/count-turns",
		decision.StagePaused:   "CountWaits: 2 pods started with another count, such as b: the Deployment is paused: resume it",
		decision.StageNever:    "CountWaits: 2 pods started with another count, such as b: idalloc-controller evicts no pods of a Deployment: set annotation idalloc.dev/on-count-change to restart or keep",
		decision.StageSettling: "", decision.StageEvicting: "", decision.StageRollout: "", // of a Deployment
	} {
		clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
		b := &board{}
		p := b.pass(t, clk)
		d := decision.Decision{Behind: []decision.Behind{
			{Pod: "a", Started: "3", Stage: stage, SettledAt: clk.Now().Add(time.Minute)}, {Pod: "b", Started: "3", Stage: stage, SettledAt: clk.Now()},
		}}
		p.tell(t.Context(), d)
		if len(b.events) > 0 {
			t.Errorf("%s: too soon: %q", stage, b.events)
		}
		if want != "" && p.after != starts {
			t.Errorf("%s: the next pass comes after %s", stage, p.after)
		}
		clk.Step(starts)
		for range 2 {
			p.world.Now = clk.Now()
			p.tell(t.Context(), d)
		}
		if got := strings.Join(b.events, "\n"); got != want {
			t.Errorf("%s: %q, want %q", stage, got, want)
		}
	}
}

func TestAPodThatAsksForNoMachineNumberIsTold(t *testing.T) {
	b := &board{}
	p := b.pass(t, clock.RealClock{})
	meta := metav1.ObjectMeta{Name: "a", UID: "a", Annotations: map[string]string{assignment.FirstNumberKey: "0"}}
	p.metas["a"] = &podMeta{ObjectMeta: meta}
	if q := p.podOf(&corev1.Pod{ObjectMeta: meta}); !q.BadNumber {
		t.Error("the pod would get an id")
	}
	p.tell(t.Context(), decision.Decision{Waits: []decision.Wait{{Pod: "a", Reason: decision.ReasonNumber}}})
	want := []string{`NumberInvalid: the pod gets no id, because annotation idalloc.dev/first-number: not a number from 1 to 999999999 without leading zeros: "0": correct or remove the annotation in the pod template`}
	if !slices.Equal(b.events, want) {
		t.Errorf("it says %q", b.events)
	}
}

func TestAPodForALaterControllerIsTold(t *testing.T) {
	b := &board{}
	p := b.pass(t, clock.RealClock{})
	meta := metav1.ObjectMeta{Name: "a", UID: "a", Annotations: map[string]string{receipt.ContractKey: "2"}}
	p.metas["a"] = &podMeta{ObjectMeta: meta}
	if q := p.podOf(&corev1.Pod{ObjectMeta: meta}); !q.Newer {
		t.Error("the pod would get an id")
	}
	p.tell(t.Context(), decision.Decision{Waits: []decision.Wait{{Pod: "a", Reason: decision.ReasonContract}}})
	want := []string{"ContractUnknown: the pod has annotation idalloc.dev/contract: 2, and this idalloc-controller keeps contracts up to 1: upgrade it"}
	if !slices.Equal(b.events, want) {
		t.Errorf("it says %q", b.events)
	}
}

// No pod would get an id, and only the log at --v=1 would say why.
func TestAnAPIServerWhoseVersionsAreNoTokensIsTold(t *testing.T) {
	b := &board{}
	p := b.pass(t, clock.RealClock{})
	p.metrics = NewMetrics(nil, nil, nil)
	p.metas["a"] = &podMeta{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "shop", UID: "a", ResourceVersion: "0x10"}}
	p.world.Pods = []decision.Pod{{Pod: proposal.Pod{Name: "a", UID: "a", Owned: true}, Assigned: true, Gated: true}}
	p.write(t.Context(), make(chan struct{}, 1), []write{p.swap("a", stepTake, "", receipt.Receipt{State: receipt.Locks})}, nil)
	p.tell(t.Context(), decision.Decision{})
	const says = `the API server's resourceVersion is no fencing token: it is "0x10"`
	if len(b.events) != 2 || !strings.HasPrefix(b.events[0], "WriteRefused: idalloc-controller cannot write a lock on the pod: ") || !strings.Contains(b.events[0], says) ||
		!strings.HasPrefix(b.events[1], "WriteRefused: idalloc-controller cannot write a lock on 1 pods, such as pod a: ") {
		t.Errorf("it says %q", b.events)
	}
}

func TestAPodBehindOtherGatesForAMinuteIsTold(t *testing.T) {
	for age, want := range map[time.Duration][]string{
		starts / 2: nil,
		2 * starts: {"OtherGates: the pod gets an id when idalloc's scheduling gate is its last one: see who removes the others"},
	} {
		b := &board{}
		p := b.pass(t, clock.RealClock{})
		p.metas["a"] = &podMeta{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}
		p.tell(t.Context(), decision.Decision{Waits: []decision.Wait{{Pod: "a", Since: p.world.Now.Add(-age), Reason: decision.ReasonGates}}})
		if !slices.Equal(b.events, want) || (p.after > 0) != (want == nil) {
			t.Errorf("after %s it says %q, and comes again after %s", age, b.events, p.after)
		}
	}
}

func TestManyPodsBehindOtherGatesAreToldInParts(t *testing.T) {
	b := &board{}
	p := b.pass(t, clock.RealClock{})
	waits := make([]decision.Wait, 0, 3*mostTold)
	for i := range 3 * mostTold {
		name := strconv.Itoa(i)
		p.metas[name] = &podMeta{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		waits = append(waits, decision.Wait{Pod: name, Since: p.world.Now.Add(-2 * starts), Reason: decision.ReasonGates})
	}
	for n := mostTold; n <= len(waits); n += mostTold {
		p.after = 0
		p.tell(t.Context(), decision.Decision{Waits: waits})
		if len(b.events) != n || (p.after > 0) != (n < len(waits)) {
			t.Errorf("%d pods are told, not %d, and the next pass comes after %s", len(b.events), n, p.after)
		}
	}
}

func TestAStuckUpdateOfAgentsIsTold(t *testing.T) {
	for age, want := range map[time.Duration][]string{
		starts / 2: nil,
		2 * starts: {"RolloutWaits: 1 pods of the current revision wait for the ids of older ones; no pod of an older revision hands its id over, and the strategy has " +
			"maxUnavailable 0: " + allocator.WayOut},
	} {
		waits := []decision.Wait{{Pod: "c", Since: time.Now().Add(-age), Reason: decision.ReasonKept}}
		if got := (&board{}).of(t, func(*store.Owner) {}, decision.Decision{Waits: waits}); !slices.Equal(got, want) {
			t.Errorf("after %s: %q, want %q", age, got, want)
		}
	}
}

// An API server that has just started refuses everything until it has read its roles.
// A Rollout with maxUnavailable 0 waits for new pods, and these wait for the ids of old ones.
func TestAStuckUpdateOfAFurtherKindIsTold(t *testing.T) {
	for controller, want := range map[string]bool{"old": false, "new": true} {
		b := &board{}
		p := b.pass(t, clock.RealClock{})
		p.ref = kinds.Ref{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Namespace: "shop", Name: worker, Resource: "rollouts"}
		p.owner.Ref = p.ref
		p.world.Pods = []decision.Pod{
			{Pod: proposal.Pod{Name: "a", Owned: true, Controller: "old", Receipt: receipt.Receipt{State: receipt.Locks}}},
			{Pod: proposal.Pod{Name: "b", Owned: true, Controller: controller}},
		}
		p.metas = map[string]*podMeta{"a": {}, "b": {}}
		d := decision.Decision{Waits: []decision.Wait{{Pod: "b", Since: p.world.Now.Add(-2 * starts), Reason: decision.ReasonSlots}}}
		for range 2 {
			p.tell(t.Context(), d)
		}
		told := len(b.events) == 1 && strings.HasPrefix(b.events[0], "RolloutWaits: 1 pods of the current revision wait") && strings.Contains(b.events[0], "maxUnavailable")
		if told != want || !want && len(b.events) > 0 {
			t.Errorf("a pod of %s waits: %v", controller, b.events)
		}
	}
}

func TestARightThatTheControllerLacksForAWhileIsTold(t *testing.T) {
	clk, b := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), &board{}
	p := b.pass(t, clk)
	p.cache = &behind{}
	lacks := func() {
		err := &request.ForbiddenError{Verb: "patch", Resource: "pods", Namespace: "shop", Name: "a", Err: errors.New("no role")}
		p.tellForbidden(t.Context(), p.ref, p.memory, fmt.Errorf("pod a: %w", err))
	}
	lacks()
	clk.Step(patience - time.Second)
	p.tellForbidden(t.Context(), p.ref, p.memory, nil)
	lacks()
	clk.Step(patience - time.Second)
	if lacks(); len(b.events) > 0 {
		t.Errorf("told too soon: %q", b.events)
	}
	clk.Step(time.Second)
	lacks()
	lacks()
	if len(b.events) != 1 || !strings.HasPrefix(b.events[0], `ControllerForbidden: forbidden: cannot patch pods "a" in namespace shop: add verb "patch"`) {
		t.Errorf("Events are %q", b.events)
	}
}
