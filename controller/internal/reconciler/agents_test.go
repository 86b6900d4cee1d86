package reconciler

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// The controller confirms each lock once. What only gives, or notes tokens, needs no T3, and what a new process writes does.
func TestWhichReceiptsNeedT3(t *testing.T) {
	lock := func(write string, set placement.Set, tokens ...identity.Share) receipt.Receipt {
		r := receipt.Receipt{UID: "u", Owner: own, State: receipt.Locks, Write: write, Share: receipt.Share{ID: 1, Of: 8, Partitions: set}, Tokens: tokens}
		if tokens != nil {
			r.Token = 5
		}
		return r
	}
	all, some := placement.Between(0, 3), placement.Between(0, 1)
	noted := []identity.Share{{Set: all, Token: 5}}
	confirmed := func(write string, more placement.Set) *receipt.Confirmed {
		return &receipt.Confirmed{Write: write, Partitions: more}
	}
	type moment struct {
		receipt   receipt.Receipt
		confirmed *receipt.Confirmed
		settled   bool
	}
	for name, moments := range map[string][]moment{
		"a first lock":                   {{lock("a", all), nil, false}},
		"it gives":                       {{lock("a", all), confirmed("a", placement.Set{}), false}, {lock("b", some), confirmed("a", placement.Set{}), true}},
		"it gives before that is known":  {{lock("a", all), nil, false}, {lock("b", some), confirmed("a", placement.Set{}), true}},
		"it gives what was not granted":  {{lock("a", all), nil, false}, {lock("b", some), confirmed("a", some), false}},
		"it gives, and was not listed":   {{lock("a", all), nil, false}, {lock("b", some), nil, false}},
		"it notes, and then it restarts": {{lock("a", all), confirmed("a", placement.Set{}), false}, {lock("b", all, noted...), confirmed("a", placement.Set{}), true}, {lock("c", all, noted...), confirmed("a", placement.Set{}), false}},
		"it restarts":                    {{lock("a", all), confirmed("a", placement.Set{}), false}, {lock("b", all), confirmed("a", placement.Set{}), false}},
		"it takes more":                  {{lock("a", some), confirmed("a", placement.Set{}), false}, {lock("b", all), confirmed("a", placement.Set{}), false}},
		"the controller starts":          {{lock("a", all, noted...), nil, true}},
		"the controller starts too soon": {{lock("a", all, identity.Share{Set: some, Token: 5}), nil, false}},
		"it has waited between":          {{lock("a", all), confirmed("a", placement.Set{}), false}, {receipt.Receipt{State: receipt.Waits, Write: "b"}, confirmed("a", placement.Set{}), false}, {lock("c", some), confirmed("a", placement.Set{}), false}},
	} {
		m := agentMemory{receipts: map[string]seenReceipt{}, pace: pace.New(func() float64 { return 0.5 })}
		for i, at := range moments {
			q := decision.Pod{Pod: proposal.Pod{UID: "u", Receipt: at.receipt}, Agent: true, Proposal: receipt.Proposal{Confirmed: at.confirmed}}
			for range 2 { // a pass may look twice
				if m.see(&q, time.Unix(int64(i), 0)); q.Settled != at.settled {
					t.Errorf("%s, receipt %d: it is settled: %v", name, i, q.Settled)
				}
			}
		}
	}
}

// A new count is news for each of hundreds of pods. A partition that comes free meanwhile is not to rest until all have heard of it.
func TestWhatCanWaitIsLeftToTheNextPassOnceThereIsNews(t *testing.T) {
	w := decision.World{}
	for i := range 3 * few {
		w.Pods = append(w.Pods, decision.Pod{Agent: true, Told: true, Pod: proposal.Pod{Name: strconv.Itoa(i), Owned: true}})
	}
	told := 0
	for what, c := range map[string]struct {
		before, meanwhile int64
		want              int
	}{
		"none": {0, 0, 3 * few}, "while the first is told": {0, 1, few}, "news that never ends": {1, 1, few},
	} {
		p := passOf(t, nil)
		p.slots, p.slow, p.metrics = make(chan struct{}, 1), make(chan struct{}, 1), NewMetrics(time.Now, nil, nil)
		p.memory.news.Add(c.before)
		told = 0
		all := make([]write, 0, len(w.Pods))
		for _, q := range w.Pods {
			p.metas[q.Name] = &podMeta{ObjectMeta: metav1.ObjectMeta{Name: q.Name, UID: types.UID(q.Name)}}
			all = append(all, write{pod: q.Name, step: stepPropose, says: "this", do: func(_ context.Context, pod *podMeta) (*podMeta, error) {
				told++
				p.memory.news.Add(c.meanwhile)
				return pod, nil
			}})
		}
		if p.inTurn(t.Context(), all, 0); told != c.want {
			t.Errorf("%s: %d of %d are told, want %d", what, told, len(all), c.want)
		}
	}
}

// refusal answers every request with this status.
type refusal struct {
	code   int
	reason metav1.StatusReason
}

func (a refusal) RoundTrip(r *http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader(fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"details":{"name":"a","kind":"pods"}}`, a.reason, a.code)))
	return &http.Response{StatusCode: a.code, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
}

// refusedPass is a pass that knows pod a, whose writes are all answered so.
func refusedPass(t *testing.T, answer refusal) *pass {
	t.Helper()
	s, err := store.New(&rest.Config{Host: "http://api.invalid", Transport: answer}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	p := passOf(t, nil)
	p.store, p.slots, p.metrics = s, make(chan struct{}, 1), NewMetrics(time.Now, nil, nil)
	p.metas["a"] = &podMeta{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "shop", UID: "u", ResourceVersion: "1"}}
	return p
}

// A kubelet writes the status of a pod, of which no pass hears. That a pod is gone, the watch says, too.
func TestAnAgentWhosePodChangedMeanwhileIsToldAgain(t *testing.T) {
	for again, answer := range map[bool]refusal{true: {http.StatusConflict, metav1.StatusReasonConflict}, false: {http.StatusNotFound, metav1.StatusReasonNotFound}} {
		p := refusedPass(t, answer)
		p.propose(t.Context(), []decision.Propose{{Pod: "a", Next: receipt.Proposal{UID: "u", Share: receipt.Nothing()}}})
		if (p.after > 0) != again {
			t.Errorf("%s: the next pass comes after %s", answer.reason, p.after)
		}
		if len(p.memory.writes) == 0 || p.memory.refuses("u") != nil {
			t.Errorf("%s: the pod counts as refused", answer.reason)
		}
	}
}

// Nothing in the cluster says since when an id has had no pod. docs/agents.md says so.
func TestANewLeaderCountsFailoverAfterFromItsStart(t *testing.T) {
	p, begin := passOf(t, nil), time.Unix(0, 0)
	p.owner.Record.State.Row = &assignment.Row{Owners: placement.Owners{0: {}}}
	p.world.Owner.Wish.FailoverAfter = 30 * time.Second
	vacant := func(at time.Duration) bool {
		p.world.Now = begin.Add(at)
		p.recallPartitions()
		_, is := p.world.Vacant[0]
		return is
	}
	if vacant(0) || !vacant(30*time.Second) {
		t.Error("the time of an id without a pod is not counted")
	}
	p.memory = &memory{}
	if vacant(31*time.Second) || !vacant(61*time.Second) {
		t.Error("a new leader does not count from its start")
	}
}
