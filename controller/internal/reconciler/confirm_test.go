package reconciler

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const appsV1, worker = "apps/v1", "worker"

// own is the owner of the tests.
const own = "Deployment/worker"

// lists answers lists of metadata by kind.
type lists struct {
	client.Reader

	items map[string][]podMeta
}

func (l *lists) List(_ context.Context, list client.ObjectList, of ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(of)
	metas, _ := list.(*metav1.PartialObjectMetadataList)
	metas.Items = slices.DeleteFunc(slices.Clone(l.items[strings.TrimSuffix(metas.Kind, "List")]), func(item podMeta) bool {
		return !o.LabelSelector.Matches(labels.Set(item.Labels))
	})
	return nil
}

func controlledBy(uid types.UID, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: appsV1, Kind: kind, Name: "any", UID: uid, Controller: new(true)}}
}

// moved is a pod of ReplicaSet "old" that began under one owner and locks for another by now.
func moved(began, lock string) podMeta {
	r := receipt.Receipt{UID: "a", Owner: lock, State: receipt.Locks, Begun: true, Write: "w"}
	return podMeta{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "a", OwnerReferences: controlledBy("old", kinds.ReplicaSet),
		Labels: map[string]string{"app": worker, receipt.AssignLabel: receipt.ByController, receipt.OwnerLabel: assignment.OwnerLabelValue(lock)},
		Annotations: map[string]string{
			receipt.Key: r.Encode(), receipt.IDKey: "0",
			receipt.IdentityKey: `{"state":"assigned","id":0,"count":2,"token":5,"pod":"a","owner":{"apiVersion":"apps/v1","kind":"` +
				strings.Replace(began, "/", `","name":"`, 1) + `"}}`,
		},
	}}
}

func passOf(t *testing.T, server client.Reader) *pass {
	t.Helper()
	ref, known := kinds.NewRef(appsV1, kinds.Deployment, "shop", worker)
	if !known {
		t.Fatal("a Deployment is no owner")
	}
	return &pass{
		Reconciler: &Reconciler{server: server, store: &store.Store{Clock: clock.RealClock{}}}, ref: ref, memory: &memory{}, sets: map[string]bool{"new": false},
		metas: map[string]*podMeta{}, written: map[string]*podMeta{},
		owner: store.Owner{Ref: ref, UID: "owner", Selector: "app=worker"},
	}
}

// A Deployment was deleted and its pods locked their slots for the ReplicaSet. A list by the Deployment's name does not show them when it is there
// again, and the watches may show its new pods before they show that it adopted the ReplicaSet.
func TestT3SeesPodsOfTheOwnerThatLockForOthers(t *testing.T) {
	const set, another = "ReplicaSet/old", types.UID("another")
	at, again := moved(own, set), moved(own, own)
	again.Annotations[receipt.Key] = strings.Replace(again.Annotations[receipt.Key], `"w"`, `"listed"`, 1)
	for what, c := range map[string]struct {
		pod     podMeta
		known   *podMeta
		adopted types.UID
		listed  bool
		news    bool
		counts  int
	}{
		"it runs under an id of the owner":                   {at, nil, another, false, true, 1},
		"the pass knows it":                                  {at, &at, another, false, false, 1},
		"the pass knows it with another receipt":             {at, new(moved(own, own)), another, false, true, 1},
		"it runs under an id of another owner":               {moved(set, set), nil, another, false, false, 0},
		"the owner has adopted it":                           {moved(set, set), nil, "owner", false, true, 1},
		"the owner has adopted it, and that is known":        {moved(set, set), new(moved(set, set)), "owner", false, false, 1},
		"it locks for the owner again, since the first list": {moved(own, own), nil, another, false, true, 1},
		"the first list shows that it locks for the owner":   {again, nil, another, true, false, 0},
	} {
		set := podMeta{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "old", Labels: map[string]string{"app": worker}, OwnerReferences: controlledBy(c.adopted, kinds.Deployment)}}
		server := &lists{items: map[string][]podMeta{podKind: {c.pod}, kinds.ReplicaSet: {set}}}
		p := passOf(t, server)
		p.metas = map[string]*podMeta{"a": c.known}
		shown := map[string]string{}
		if c.listed {
			shown["a"] = c.pod.Annotations[receipt.Key]
		}
		locks, news, err := p.elsewhere(t.Context(), shown, "7")
		if err != nil {
			t.Fatal(err)
		}
		if news != c.news || len(locks) != c.counts {
			t.Errorf("%s: news is %v, and it counts: %+v", what, news, locks)
		}
	}
}

func TestAPlanKnowsPodsThatRunUnderTheOwnersIDsAndLockForOthers(t *testing.T) {
	for what, c := range map[string]struct {
		began string
		want  int
	}{"the owner": {own, 1}, "another owner": {"ReplicaSet/old", 0}} {
		meta := moved(c.began, "ReplicaSet/old")
		pod := corev1.Pod{ObjectMeta: meta.ObjectMeta}
		p := passOf(t, nil)
		if p.see(&corev1.PodList{Items: []corev1.Pod{pod}}); len(p.world.Pods) != c.want {
			t.Errorf("it began under %s: the plan knows %d pods", what, len(p.world.Pods))
		}
		if found := slices.Contains(indexed(&pod), lockValue(own)); found != (c.want == 1) {
			t.Errorf("it began under %s: the cache finds it: %v", what, found)
		}
	}
}
