package reconciler

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// The generation of a StatefulSet or a Job does not count annotations. What decisions need of them is to be heard of.
func TestTheCacheShowsThatAnnotationsOfAnOwnerChange(t *testing.T) {
	trimmed := func(annotations map[string]string) any {
		out, err := trimMeta(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: worker, Annotations: annotations}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := map[string]string{assignment.Key: `{"0":"a"}`, "other": "a"}
	for key, heard := range map[string]bool{
		assignment.Key: true, assignment.HandoverKey: true, assignment.PartitionOwnersKey: true, assignment.EvictKey: true, revisionKey: true, assignment.PartitionCountKey: true,
		assignment.PartitionStrategyKey: true, assignment.PartitionFailoverAfterKey: true, assignment.PartitionGiveBackAfterKey: true, assignment.PartitionTargetKey: true,
		"other": false,
	} {
		after := map[string]string{assignment.Key: before[assignment.Key], "other": before["other"]}
		after[key] = "changed"
		if got := !equality.Semantic.DeepEqual(trimmed(before), trimmed(after)); got != heard {
			t.Errorf("a change of %s is heard: %v", key, got)
		}
	}
}

// pods are all that a cache, or a server, has, beside a ReplicaSet "new" of "owner".
type pods struct {
	client.Reader

	all []corev1.Pod
}

func (p pods) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	if sets, ofSets := list.(*metav1.PartialObjectMetadataList); ofSets && sets.Kind == kinds.ReplicaSet+"List" && (o.FieldSelector == nil || o.FieldSelector.Matches(fields.Set{index: "owner"})) {
		sets.Items = []podMeta{{ObjectMeta: metav1.ObjectMeta{Name: "any", UID: "new", OwnerReferences: controlledBy("owner", kinds.Deployment)}}}
	}
	out, ofPods := list.(*corev1.PodList)
	for i := range p.all {
		matches := func(value string) bool { return o.FieldSelector.Matches(fields.Set{index: value}) }
		if ofPods && (o.FieldSelector == nil || slices.ContainsFunc(indexed(&p.all[i]), matches)) {
			out.Items = append(out.Items, p.all[i])
		}
	}
	return nil
}

func (pods) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// A workload releases a pod whose labels were changed. The pod keeps its id and its entry in the map, and hears of a new count.
func TestAnOwnerIsHeardOfForAPodThatItHasReleased(t *testing.T) {
	ref, _ := kinds.NewRef(appsV1, kinds.StatefulSet, "shop", worker)
	owner := &metav1.ObjectMeta{Name: worker, UID: "of-worker"}
	controlled := []metav1.OwnerReference{{APIVersion: appsV1, Kind: kinds.StatefulSet, Name: worker, UID: "of-worker", Controller: new(true)}}
	lock := receipt.Receipt{UID: "u", Owner: ref.String(), State: receipt.Locks, Share: receipt.Share{ID: 3}, Write: "w"}
	other := lock
	other.Owner = "StatefulSet/other"
	for what, want := range map[string]struct {
		pod  metav1.ObjectMeta
		used bool
	}{
		"its own":                {metav1.ObjectMeta{OwnerReferences: controlled}, true},
		"one that it released":   {metav1.ObjectMeta{Annotations: map[string]string{receipt.Key: lock.Encode()}}, true},
		"one of another":         {metav1.ObjectMeta{Annotations: map[string]string{receipt.Key: other.Encode()}}, false},
		"one that locks nothing": {metav1.ObjectMeta{}, false},
	} {
		x := &Reconciler{cache: pods{all: []corev1.Pod{{ObjectMeta: want.pod}}}}
		if got := x.used(t.Context(), ref, owner); got != want.used {
			t.Errorf("with %s the owner is heard of: %v", what, got)
		}
	}
}

// Another client made the receipt of such a pod unreadable. Its label says whose slot it locks, and whose slot comes free when it goes.
func TestAReleasedPodIsItsOwnersWhateverBecameOfItsReceipt(t *testing.T) {
	ref, _ := kinds.NewRef(appsV1, kinds.Deployment, "shop", worker)
	x := &Reconciler{memories: map[kinds.Ref]*memory{ref: {}}}
	for owner, want := range map[string]kinds.Ref{
		own: ref, "Deployment/other": {APIVersion: "v1", Kind: podKind, Namespace: "shop", Name: "a"},
	} {
		pod := &metav1.ObjectMeta{
			Namespace: "shop", Name: "a", Annotations: map[string]string{receipt.Key: "{"}, Labels: map[string]string{receipt.OwnerLabel: assignment.OwnerLabelValue(owner)},
		}
		if got := x.ownerOfPod(t.Context(), pod); got != want {
			t.Errorf("a pod with the label of %s is %v's, want %v", owner, got, want)
		}
	}
}

// Another client made the receipt of a pod unreadable and removed its label. Whatever waits for its locks goes on when the pod is gone.
func TestAPodThatMayLockAnythingIsMissedByAllOwnersOfItsNamespace(t *testing.T) {
	here, _ := kinds.NewRef(appsV1, kinds.Deployment, "shop", worker)
	beside, _ := kinds.NewRef(appsV1, kinds.StatefulSet, "shop", "other")
	elsewhere, _ := kinds.NewRef(appsV1, kinds.Deployment, "bank", worker)
	x := &Reconciler{memories: map[kinds.Ref]*memory{here: {}, beside: {}, elsewhere: {}}, cache: pods{}}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[kinds.Ref]())
	defer q.ShutDown()
	gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Annotations: map[string]string{receipt.Key: "{"}, OwnerReferences: controlledBy("gone", kinds.ReplicaSet)}}
	x.podEvents().Delete(t.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: gone}, q)
	heard := map[kinds.Ref]bool{}
	for range q.Len() {
		ref, _ := q.Get()
		heard[ref] = true
	}
	if !heard[here] || !heard[beside] || heard[elsewhere] {
		t.Errorf("heard of %v", heard)
	}
}

// Anyone may write such a reference on a pod, and the controller would write a map on a Deployment that never asked.
func TestAPodThatNamesADeploymentAsItsControllerIsNoneOfItsPods(t *testing.T) {
	known, _, err := kinds.BuiltIn().Find(nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := &metav1.ObjectMeta{Namespace: "shop", Name: "a", OwnerReferences: controlledBy("owner", kinds.Deployment)}
	x := &Reconciler{kinds: known, cache: pods{}}
	if got := x.ownerOfPod(t.Context(), pod); got.Kind != podKind {
		t.Errorf("its owner is %v", got)
	}
	if passOf(t, nil).owns(pod) {
		t.Error("the Deployment has it")
	}
}
