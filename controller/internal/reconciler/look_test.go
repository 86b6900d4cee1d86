package reconciler

import (
	"context"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// A kubelet's clock may be ahead of the controller's by hours. For all that time a pod would not count as available, and old pods would be deleted past
// their budget.
func TestAPodThatIsReadyIsAvailableWhateverTheClock(t *testing.T) {
	p, now := &pass{}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(3 * time.Hour))},
	}}}
	if q := p.podOf(pod); !q.Ready || q.AvailableAt.After(now) {
		t.Errorf("without minReadySeconds a pod that is Ready is available only at %s", q.AvailableAt)
	}
	p.owner.Rollout.MinReady = time.Minute
	if q := p.podOf(pod); !q.AvailableAt.After(now.Add(3 * time.Hour)) {
		t.Errorf("with minReadySeconds it is available at %s already", q.AvailableAt)
	}
}

// Lists find a lock by its labels.
func TestALockWithOtherLabelsIsHidden(t *testing.T) {
	ref, known := kinds.NewRef(appsV1, kinds.Deployment, "shop", worker)
	if !known {
		t.Fatal("a Deployment is no owner")
	}
	p := &pass{ref: ref, owner: store.Owner{Ref: ref}}
	lock := receipt.Receipt{UID: "u", Owner: ref.String(), State: receipt.Locks, Share: receipt.Share{ID: 3}, Write: "w"}
	for what, want := range map[string]struct {
		labels map[string]string
		hidden bool
	}{
		"its own":        {map[string]string{receipt.IDLabel: "3", receipt.OwnerLabel: assignment.OwnerLabelValue(ref.String())}, false},
		"none":           {nil, true},
		"of another id":  {map[string]string{receipt.IDLabel: "4", receipt.OwnerLabel: assignment.OwnerLabelValue(ref.String())}, true},
		"without owner":  {map[string]string{receipt.IDLabel: "3"}, true},
		"of other owner": {map[string]string{receipt.IDLabel: "3", receipt.OwnerLabel: "other"}, true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Labels: want.labels, Annotations: map[string]string{receipt.Key: lock.Encode()}}}
		if q := p.podOf(pod); q.Hidden != want.hidden || q.Receipt.State != receipt.Locks {
			t.Errorf("labels %s: hidden is %v, state %v", what, q.Hidden, q.Receipt.State)
		}
	}
}

// behind is a cache that shows an old version of a pod for a number of reads.
type behind struct {
	client.Reader

	reads, late int
}

func (b *behind) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetName(key.Name)
	o.SetUID("u")
	if o.SetResourceVersion("8"); b.reads >= b.late {
		o.SetResourceVersion("9")
	}
	b.reads++
	return nil
}

// The next pass would see pods as they were, list once more, and write what fails its tests.
func TestAPassEndsWhenTheCacheShowsWhatItWrote(t *testing.T) {
	cache := &behind{late: 3}
	p := passOf(t, nil)
	p.cache = cache
	p.wrote("a", &podMeta{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "9"}}) // protobuf tells no kind
	if err := p.caughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cache.reads <= cache.late {
		t.Errorf("the pass ended after %d reads of a cache that was behind for %d", cache.reads, cache.late)
	}
}

// In a migration an old pod takes for itself, gives its slot up and waits. Without it the slot is not scarce, and a new pod gets it that never runs.
func TestAPodThatTheCacheDoesNotHaveCountsForAsLongAsItWaits(t *testing.T) {
	made := metav1.ObjectMeta{Name: "new", UID: "new", OwnerReferences: controlledBy("new", kinds.ReplicaSet), Labels: map[string]string{receipt.AssignLabel: receipt.ByAgent}}
	waits := receipt.Receipt{UID: "old", Owner: own, State: receipt.Waits, Rank: 3, Write: "w"}
	old := metav1.ObjectMeta{Name: "old", UID: "old", OwnerReferences: controlledBy("new", kinds.ReplicaSet), Annotations: map[string]string{receipt.Key: waits.Encode()}}
	p := passOf(t, pods{all: []corev1.Pod{{ObjectMeta: made}, {ObjectMeta: old}}})
	p.cache = pods{all: []corev1.Pod{{ObjectMeta: made}}}
	p.owner.Record.State.Slots = assignment.Slots{0: "old"}
	for range 3 {
		if err := p.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.pod("old") == nil {
			t.Errorf("a pass with the map %v sees %+v", p.owner.Record.State.Slots, p.world.Pods)
		}
		p.owner.Record.State.Slots = nil
	}
}

// Another writer removes all labels and the receipt of a running pod. The pod's labels select it no longer, but the cache finds it by its identity. If a list
// forgot the pod, passes with a list and passes without one would write the map by turns, many times a minute.
func TestAListForgetsNoRunningPodThatLostItsLabels(t *testing.T) {
	runs := identity.Identity{Pod: "a", Owner: identity.Owner{Kind: kinds.Deployment, Name: worker}, State: identity.StateAssigned, Count: 1}
	text, err := runs.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	bare := pods{all: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "a", Labels: map[string]string{receipt.AssignLabel: receipt.ByController}, Annotations: map[string]string{receipt.IdentityKey: string(text)},
	}}}}
	p := passOf(t, pods{})
	p.cache = bare
	for _, listed := range []bool{true, false, true} {
		if p.memory.outside.listed = true; listed {
			err = p.lookOutside(t.Context())
		} else {
			err = p.look(t.Context())
		}
		if err != nil || p.pod("a") == nil {
			t.Errorf("with a list of the pods that have the owner's labels (%v), a pass sees %+v, %v", listed, p.world.Pods, err)
		}
	}
	p.cache = pods{}
	if err := p.lookOutside(t.Context()); err != nil || p.pod("a") != nil {
		t.Errorf("a pod that has ended counts, %v", err)
	}
}

// Another replica was elected while an old pod waits that takes for itself. The first write of the map gives its slot to no new pod that never runs.
func TestANewLeaderLooksForPodsThatTheCacheDoesNotHaveBeforeItGivesASlot(t *testing.T) {
	waits := receipt.Receipt{UID: "old", Owner: own, State: receipt.Waits, Rank: 3, Write: "w"}
	made := metav1.ObjectMeta{Name: "new", UID: "new", OwnerReferences: controlledBy("new", kinds.ReplicaSet), Labels: map[string]string{receipt.AssignLabel: receipt.ByAgent}}
	old := metav1.ObjectMeta{Name: "old", UID: "old", OwnerReferences: controlledBy("new", kinds.ReplicaSet), Annotations: map[string]string{receipt.Key: waits.Encode()}}
	for what, others := range map[string]struct {
		listed []corev1.Pod
		writes bool
	}{
		"an old pod waits": {[]corev1.Pod{{ObjectMeta: made}, {ObjectMeta: old}}, false},
		"no other pods":    {[]corev1.Pod{{ObjectMeta: made}}, true},
	} {
		p := refusedPass(t, refusal{http.StatusConflict, metav1.StatusReasonConflict}) // nothing is written
		p.server, p.cache, p.owner.Count = pods{all: others.listed}, pods{all: []corev1.Pod{{ObjectMeta: made}}}, 1
		if err := p.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if step := decision.Decide(p.world).First(decision.Steps{}); step != decision.StepList {
			t.Errorf("%s: the first step is %d", what, step)
		}
		if err := p.listAll(t.Context(), decision.Decision{}); err != nil {
			t.Fatal(err)
		}
		if d := decision.Decide(p.world); (d.Plan.Next != nil) != others.writes {
			t.Errorf("%s: the map is to be written: %v", what, d.Plan.Next != nil)
		}
	}
}

// A migration is over but for an old pod that takes for itself. No watch shows that it is gone, and no other pod has the next step to its entry.
func TestAPodThatTheCacheDoesNotHaveIsLookedForUntilItIsGone(t *testing.T) {
	pod := func(name string, labels map[string]string, id int) corev1.Pod {
		lock := receipt.Receipt{UID: name, Owner: own, State: receipt.Locks, Share: receipt.Share{ID: id}, Write: "w"}
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), OwnerReferences: controlledBy("new", kinds.ReplicaSet), Labels: labels,
			Annotations: map[string]string{receipt.Key: lock.Encode()},
		}}
	}
	made, old := pod("new", map[string]string{receipt.AssignLabel: receipt.ByAgent}, 0), pod("old", nil, 2)
	for what, c := range map[string]struct {
		watched, listed []corev1.Pod
		again           bool
	}{
		"it lives":                               {[]corev1.Pod{made}, []corev1.Pod{made, old}, true},
		"it is gone":                             {[]corev1.Pod{made}, []corev1.Pod{made}, false},
		"all pods of the controller are no more": {nil, []corev1.Pod{old}, false},
	} {
		p := passOf(t, pods{all: c.listed})
		p.cache, p.metrics = pods{all: c.watched}, NewMetrics(time.Now, nil, nil)
		p.owner.Record.State.Slots = assignment.Slots{0: "new", 2: "old"}
		if err := p.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.rest(t.Context(), decision.Decision{}); p.after > 10*time.Second || (p.after > 0) != c.again {
			t.Errorf("%s: the next pass comes after %s", what, p.after)
		}
	}
}

// An id of a pod that takes for itself begins to divide partitions. The controller waits once for others that do: each pass lists pods outside of the cache, and
// without these it would seem as if the id had gone and come again.
func TestAnIDOutsideOfTheCacheJoinsOnce(t *testing.T) {
	lock := receipt.Receipt{UID: "old", Owner: own, State: receipt.Locks, Share: receipt.Share{ID: 1, Of: 4}, Write: "w"}
	made := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "new", UID: "new", OwnerReferences: controlledBy("new", kinds.ReplicaSet), Labels: map[string]string{receipt.AssignLabel: receipt.ByAgent},
	}}
	old := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "old", UID: "old", OwnerReferences: controlledBy("new", kinds.ReplicaSet), Annotations: map[string]string{receipt.Key: lock.Encode()},
	}}
	clk := testclock.NewFakeClock(time.Unix(1000, 0))
	p := passOf(t, pods{all: []corev1.Pod{made, old}})
	p.cache, p.owner.Count, p.store = pods{all: []corev1.Pod{made}}, 2, &store.Store{Clock: clk}
	p.memory.outside.found = true
	for _, gathers := range []bool{true, false, false} {
		if err := p.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.world.Gathers != gathers {
			t.Errorf("at %s it waits for others: %v", clk.Now(), p.world.Gathers)
		}
		clk.Step(firstGather)
	}
}

// A workload goes back to pods that take for themselves, and the one that was to follow is replaced: for a moment there is none. No watch tells of the next.
func TestTheControllerLooksForPodsOfARevisionWithoutItsLabel(t *testing.T) {
	old := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "old", UID: "old", OwnerReferences: controlledBy("new", kinds.ReplicaSet), Labels: map[string]string{receipt.AssignLabel: receipt.ByController},
	}}
	p := passOf(t, pods{all: []corev1.Pod{old}})
	p.cache, p.metrics = pods{all: []corev1.Pod{old}}, NewMetrics(time.Now, nil, nil)
	if err := p.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.current = "new" // which passOf says to lack the label
	if p.rest(t.Context(), decision.Decision{}); p.after != mixedAfter {
		t.Errorf("the next pass comes after %s", p.after)
	}
}

// The node of a pod that takes for itself is lost. The cache lacks that pod, and each pass sees first what the cache has.
func TestALostPodOutsideOfTheCacheCountsAsLost(t *testing.T) {
	c := newCluster(t)
	c.deployment(2, assignment.Slots{0: "a", 1: "peer"})
	c.runs("a", 0, 2)
	c.locks("peer", "", receipt.Receipt{Owner: own, Share: receipt.Share{ID: 1}, Write: "w"})
	c.api.Alone(func(s *server.Server) {
		s.Change(object.Pods, "peer", server.Writer{}, func(o object.Object) {
			object.At(o, object.Metadata)["deletionTimestamp"] = "2026-03-01T12:00:30Z"
			object.At(o, object.Metadata)["deletionGracePeriodSeconds"] = int64(30)
		})
	})
	var before corev1.PodList
	if err := c.Client.List(t.Context(), &before, client.InNamespace(server.Namespace), client.MatchingLabels{receipt.AssignLabel: receipt.ByController}); err != nil {
		t.Fatal(err)
	}
	c.x.cache = lagging{c, before.Items}
	first := c.clk.Now()
	for range 5 {
		if _, err := c.x.reconcile(t.Context(), c.ref, c.x.memory(c.ref)); err != nil {
			t.Fatal(err)
		}
		c.clk.Step(20 * time.Second)
	}
	since, known := c.x.memory(c.ref).rollout.ending[c.uid(object.Pods, "peer")]
	if !known || !since.Equal(first) {
		t.Errorf("seen Terminating since %s (%v), and was so at %s", since, known, first)
	}
}
