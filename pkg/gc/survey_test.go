package gc

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

const (
	epoch = 1795219000007
	// Fields of what a kubelet reports.
	statusField, reasonField = "status", "reason"
	itsGone                  = "its pod is gone"
	// successor is the UID of a pod that has another one's name.
	successor = "successor"
)

func theRef() store.Ref {
	return store.Ref{APIVersion: apifake.Apps, Kind: store.Deployment, Namespace: apifake.Namespace, Name: apifake.Worker}
}

func storeOf(t *testing.T, server *apifake.Server) *store.Store {
	t.Helper()
	s, err := store.New(server.Config(), "", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// held is a state in which pods of these names have the slots from 0 on.
func held(names ...string) assignment.State {
	s := assignment.State{Slots: assignment.Slots{}, UIDs: assignment.Slots{}, Epoch: epoch}
	for id, name := range names {
		s.Slots[id], s.UIDs[id] = name, assignment.ShortUID(string(apifake.UIDOf(name)))
	}
	return s
}

// ended has a pod be dead as a kubelet says it.
func ended(o *unstructured.Unstructured, phase, reason string) *unstructured.Unstructured {
	o.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "main"}}}
	o.Object[statusField] = map[string]any{"phase": phase, reasonField: reason, "containerStatuses": []any{
		map[string]any{"name": "main", "state": map[string]any{"terminated": map[string]any{reasonField: "Error"}}},
	}}
	return o
}

// failed has a pod be dead as anybody can say it.
func failed(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.Object[statusField] = map[string]any{"phase": "Failed"}
	return o
}

func relabelled(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetLabels(map[string]string{"debug": "yes"})
	return o
}

func replaced(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetUID(successor)
	return o
}

func surveyed(t *testing.T, server *apifake.Server) (Census, error) {
	t.Helper()
	s := storeOf(t, server)
	owner, err := s.Get(t.Context(), theRef())
	if err != nil {
		t.Fatal(err)
	}
	server.Requests()
	return Survey(t.Context(), s, owner)
}

func inspected(t *testing.T, server *apifake.Server, show func(pod *unstructured.Unstructured, owned bool)) (Census, error) {
	t.Helper()
	s := storeOf(t, server)
	owner, err := s.Get(t.Context(), theRef())
	if err != nil {
		t.Fatal(err)
	}
	server.Requests()
	return Inspect(t.Context(), s, owner, show)
}

func TestWhoLivesAndWhoIsDead(t *testing.T) {
	podGC := ended(apifake.Pod("a"), "Failed", "")
	if err := unstructured.SetNestedSlice(podGC.Object, []any{
		map[string]any{"type": "Ready", statusField: "False"},
		map[string]any{"type": "DisruptionTarget", reasonField: "DeletionByPodGC", statusField: "True"},
	}, statusField, "conditions"); err != nil {
		t.Fatal(err)
	}
	foreignDisruption := ended(apifake.Pod("a"), "Failed", "")
	if err := unstructured.SetNestedSlice(foreignDisruption.Object, []any{
		map[string]any{"type": "DisruptionTarget", reasonField: "PreemptionByScheduler", statusField: "True"},
		map[string]any{"type": "Other", reasonField: "DeletionByPodGC", statusField: "True"},
		map[string]any{"type": "DisruptionTarget", reasonField: "DeletionByPodGC", statusField: "False"},
	}, statusField, "conditions"); err != nil {
		t.Fatal(err)
	}
	hidden := apifake.Holding("a", 0, epoch)
	labels := hidden.GetLabels()
	delete(labels, "app")
	hidden.SetLabels(labels)
	for name, tc := range map[string]struct {
		pod  *unstructured.Unstructured // the holder of slot 0 by the map, "a"
		live bool
		// owned and receipt are what is known of it when it lives.
		owned, receipt bool
		dead           *Victim
	}{
		"it runs":                          {pod: apifake.Pod("a"), live: true, owned: true},
		"with a receipt":                   {pod: apifake.Holding("a", 0, epoch), live: true, owned: true, receipt: true},
		"relabelled, found by its receipt": {pod: hidden, live: true, receipt: true},
		"relabelled, found by its name":    {pod: relabelled(apifake.Holding("a", 0, epoch)), live: true, receipt: true},
		"gone":                             {dead: &Victim{Pod: "a", Reason: itsGone}},
		"Failed":                           {pod: ended(apifake.Pod("a"), "Failed", ""), dead: &Victim{Pod: "a", Reason: "its pod is Failed", Ended: true}},
		"evicted":                          {pod: ended(apifake.Pod("a"), "Failed", "Evicted"), dead: &Victim{Pod: "a", Reason: "its pod is Failed (Evicted)", Ended: true}},
		"Succeeded":                        {pod: ended(apifake.Pod("a"), "Succeeded", ""), dead: &Victim{Pod: "a", Reason: "its pod is Succeeded", Ended: true}},
		"Failed with its node":             {pod: podGC, dead: &Victim{Pod: "a", Reason: "its pod is Failed"}},
		"Failed, and disrupted otherwise":  {pod: foreignDisruption, dead: &Victim{Pod: "a", Reason: "its pod is Failed", Ended: true}},
		"Failed, without a kubelet's word": {pod: failed(apifake.Pod("a")), dead: &Victim{Pod: "a", Reason: "its pod is Failed"}},
		"another pod has its name":         {pod: replaced(apifake.Pod("a")), live: true, owned: true, dead: &Victim{Pod: "a", Reason: "another pod has its name now (UID successor)"}},
		"and is relabelled": {pod: relabelled(replaced(apifake.Pod("a"))), live: true,
			dead: &Victim{Pod: "a", Reason: "another pod has its name now (UID successor)"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := apifake.New(t)
			server.Put(apifake.Assigned(2, held("a")))
			server.Put(apifake.Pod("b"))
			server.Put(relabelled(apifake.Pod("stranger")))
			if tc.pod != nil {
				server.Put(tc.pod)
			}
			c, err := surveyed(t, server)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.BadReceipts) > 0 {
				t.Errorf("bad receipts: %v", c.BadReceipts)
			}
			want := []string{"b"}
			if tc.live {
				want = []string{"a", "b"}
			}
			if got := names(c.Live); !slices.Equal(got, want) {
				t.Fatalf("alive are %v, want %v", got, want)
			}
			if a := c.Live[0]; tc.live && (a.Owned != tc.owned || (a.Receipt != nil) != tc.receipt || !a.Created.Equal(apifake.Born())) {
				t.Errorf("the holder is %+v", a)
			}
			checkDead(t, c, tc.dead)
		})
	}
}

// checkDead checks that this victim, or nobody, is dead, and under which ids processes are known to have ended.
func checkDead(t *testing.T, c Census, want *Victim) {
	t.Helper()
	var dead []Victim
	ended := map[int]bool{}
	if want != nil {
		dead = append(dead, *want)
		if want.Ended {
			ended[want.ID] = true
		}
	}
	if !slices.Equal(c.Dead, dead) {
		t.Errorf("dead: %+v, want %+v", c.Dead, dead)
	}
	if got := c.Ended(); !maps.Equal(got, ended) {
		t.Errorf("processes ended under %v, want %v", got, ended)
	}
}

func names(pods []plan.Pod) []string {
	out := make([]string, 0, len(pods))
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

// A few victims are confirmed one by one, more by one list. Either way the word is that of the server, now.
func TestEveryVictimIsConfirmed(t *testing.T) {
	for n, oneByOne := range map[int]bool{3: true, 8: true, 9: false, 40: false} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			server := apifake.New(t)
			holders := make([]string, 0, n)
			for id := range n {
				holders = append(holders, fmt.Sprintf("%02d", id))
			}
			server.Put(apifake.Assigned(int64(n), held(holders...)))
			// The first is relabelled, the second Failed, the last another pod of its name; the others are gone.
			server.Put(relabelled(apifake.Pod(holders[0])))
			server.Put(failed(apifake.Pod(holders[1])))
			server.Put(relabelled(replaced(apifake.Pod(holders[n-1]))))
			server.Put(relabelled(apifake.Pod("stranger")))
			c, err := surveyed(t, server)
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{holders[0], holders[n-1]}; !slices.Equal(names(c.Live), want) {
				t.Errorf("alive are %v, want %v", names(c.Live), want)
			}
			if len(c.Dead) != n-1 {
				t.Fatalf("%d are dead, want all but the first of %d", len(c.Dead), n)
			}
			for i, v := range c.Dead {
				if v.ID != i+1 || v.Pod != holders[i+1] || v.Reason == "" || v.Ended {
					t.Errorf("victim %d is %+v", i, v)
				}
			}
			if single := slices.ContainsFunc(server.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET pods/") }); single != oneByOne {
				t.Errorf("%d victims are read one by one: %t", n, single)
			}
		})
	}
}

// A holder that its controller let go of is found by its name, and everything that a plan asks of it is known.
func TestWhatIsKnownOfAPodThatWasRelabelled(t *testing.T) {
	server := apifake.New(t)
	set := apifake.Assigned(9, held("a"))
	set.SetKind(store.StatefulSet)
	server.Put(set)
	deadline := metav1.NewTime(apifake.Born().Add(time.Minute))
	pod := relabelled(apifake.Pod("a"))
	pod.SetLabels(map[string]string{store.PodIndexLabel: "4"})
	pod.SetDeletionTimestamp(&deadline)
	pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apifake.Apps, Kind: store.StatefulSet, Name: apifake.Worker, UID: apifake.OwnerUID, Controller: new(true)}})
	server.Put(pod)
	s := storeOf(t, server)
	ref := theRef()
	ref.Kind = store.StatefulSet
	owner, err := s.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Survey(t.Context(), s, owner)
	if err != nil || len(c.Live) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if p := c.Live[0]; p.Ordinal != 4 || !p.Terminating || !p.Deadline.Equal(deadline.Time) || p.Controller != apifake.OwnerUID || p.Owned {
		t.Errorf("%+v", p)
	}
}

// A pod may be replaced by another one of its name between two lists: the later one counts.
func TestAPodThatIsReplacedBetweenTwoLists(t *testing.T) {
	pod := func(uid types.UID) []*metav1.PartialObjectMetadata {
		return []*metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uid}}}
	}
	if got := Guess(&store.Store{Clock: clock.RealClock{}}, store.Owner{}, pod("u"), pod("v")); len(got) != 1 || got[0].UID != "v" {
		t.Errorf("%+v", got)
	}
}

// Without an answer nobody is dead, neither for a plan nor for somebody who looks.
func TestNobodyIsDeadWithoutAnAnswer(t *testing.T) {
	looks := map[string]func(*testing.T, *apifake.Server) (Census, error){"survey": surveyed, "inspect": func(t *testing.T, server *apifake.Server) (Census, error) {
		t.Helper()
		return inspected(t, server, func(pod *unstructured.Unstructured, _ bool) { _ = pod.GetName() })
	}}
	for name, look := range looks {
		for _, victims := range []int{1, fewVictims + 1} {
			for lost := range 3 { // two lists and what confirms
				t.Run(fmt.Sprintf("%s: request %d, %d victims", name, lost, victims), func(t *testing.T) {
					server := apifake.New(t)
					holders := make([]string, 0, victims)
					for id := range victims {
						holders = append(holders, fmt.Sprintf("%02d", id))
					}
					server.Put(apifake.Assigned(9, held(holders...)))
					seen := -1 // the owner comes first
					server.Before(func(w http.ResponseWriter, _ *http.Request) bool {
						seen++
						if seen != lost+1 {
							return false
						}
						apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd")
						return true
					})
					c, err := look(t, server)
					if err == nil || !store.Temporary(err) || len(c.Dead)+len(c.Live) > 0 {
						t.Errorf("%+v, %v", c, err)
					}
				})
			}
		}
	}
}

func TestReceiptsThatCannotBeRead(t *testing.T) {
	with := func(text string) *unstructured.Unstructured {
		pod := apifake.Pod("a")
		pod.SetAnnotations(map[string]string{assignment.ReceiptKey: text})
		return pod
	}
	other := assignment.Receipt{UID: "a-uid", Owner: "Deployment/other", ID: 0, Epoch: epoch}
	earlier := assignment.Receipt{UID: "an earlier pod's", Owner: theRef().String(), ID: 0, Epoch: epoch}
	ahead := assignment.Receipt{UID: "a-uid", Owner: theRef().String(), ID: 0, Epoch: time.Now().Add(100 * time.Hour).UnixMilli()}
	for name, tc := range map[string]struct {
		pod         *unstructured.Unstructured
		bad, counts bool
	}{
		"none":                       {pod: apifake.Pod("a")},
		"a good one":                 {pod: apifake.Holding("a", 0, epoch), counts: true},
		"nonsense":                   {pod: with("{"), bad: true},
		"one for another owner":      {pod: with(other.Encode())},
		"one of an earlier pod":      {pod: with(earlier.Encode())},
		"with an epoch that is wild": {pod: with(ahead.Encode()), bad: true, counts: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := apifake.New(t)
			server.Put(apifake.Owner(1))
			server.Put(tc.pod)
			c, err := surveyed(t, server)
			if err != nil || len(c.Live) != 1 {
				t.Fatalf("%+v, %v", c, err)
			}
			if locks := c.Live[0].Receipt.Locks(); locks != tc.counts {
				t.Errorf("it locks its slot: %t", locks)
			}
			if bad := len(c.BadReceipts) == 1 && c.BadReceipts[0].Pod == "a" && c.BadReceipts[0].Detail != ""; bad != tc.bad || len(c.BadReceipts) > 1 {
				t.Errorf("told of it: %+v", c.BadReceipts)
			}
		})
	}
}

// pods with an ordinal, a deadline or a controller.
func TestWhatAPodIsToAPlan(t *testing.T) {
	pod := func(name string, labels, annotations map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Labels: labels, Annotations: annotations}}
	}
	deadline := metav1.NewTime(apifake.Born().Add(time.Minute))
	deleted := pod("worker-0", nil, nil)
	deleted.DeletionTimestamp = &deadline
	controlled := pod("worker-0", nil, nil)
	controlled.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {UID: "rs", Controller: new(true)}}
	index := func(n string) map[string]string { return map[string]string{store.PodIndexLabel: n} }
	completion := map[string]string{store.CompletionIndexLabel: "6"}
	for name, tc := range map[string]struct {
		kind  string
		start int
		pod   *metav1.PartialObjectMetadata
		want  plan.Pod
	}{
		"of a Deployment":                     {store.Deployment, 0, pod("worker-7", index("7"), completion), plan.Pod{Ordinal: plan.NoOrdinal}},
		"of a StatefulSet, by its name":       {store.StatefulSet, 0, pod("my-worker-7", nil, nil), plan.Pod{Ordinal: 7}},
		"of a StatefulSet, by its label":      {store.StatefulSet, 0, pod("worker-x", index("7"), nil), plan.Pod{Ordinal: 7}},
		"of a StatefulSet that starts at 5":   {store.StatefulSet, 5, pod("worker-7", nil, nil), plan.Pod{Ordinal: 2}},
		"the first of it":                     {store.StatefulSet, 5, pod("worker-5", nil, nil), plan.Pod{Ordinal: 0}},
		"one from before it was moved":        {store.StatefulSet, 5, pod("worker-3", nil, nil), plan.Pod{Ordinal: plan.NoOrdinal}},
		"without a number":                    {store.StatefulSet, 0, pod("worker", nil, nil), plan.Pod{Ordinal: plan.NoOrdinal}},
		"of a Job, by its label":              {store.Job, 0, pod("worker-abc", completion, nil), plan.Pod{Ordinal: 6}},
		"of a Job, by its annotation":         {store.Job, 0, pod("worker-abc", nil, completion), plan.Pod{Ordinal: 6}},
		"of a Job without indexes":            {store.Job, 0, pod("worker-7", nil, nil), plan.Pod{Ordinal: plan.NoOrdinal}},
		"that is being deleted":               {store.Deployment, 0, deleted, plan.Pod{Ordinal: plan.NoOrdinal, Terminating: true, Deadline: deadline.Time}},
		"with a controller and another owner": {store.Deployment, 0, controlled, plan.Pod{Ordinal: plan.NoOrdinal, Controller: "rs"}},
	} {
		t.Run(name, func(t *testing.T) {
			owner := store.Owner{Ref: store.Ref{Kind: tc.kind, Name: "worker"}, OrdinalStart: tc.start}
			s := &store.Store{Clock: clock.RealClock{}}
			for owned, guess := range map[bool][]plan.Pod{
				true:  Guess(s, owner, []*metav1.PartialObjectMetadata{tc.pod}, []*metav1.PartialObjectMetadata{tc.pod}),
				false: Guess(s, owner, nil, []*metav1.PartialObjectMetadata{tc.pod}),
			} {
				want := tc.want
				want.Name, want.UID, want.Owned = tc.pod.Name, "u", owned
				if len(guess) != 1 || guess[0] != want {
					t.Errorf("%+v, want %+v", guess, want)
				}
			}
		})
	}
}
