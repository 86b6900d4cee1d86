package allocator_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/apifake"
)

// Somebody deletes a Deployment without its ReplicaSet. A pod that the ReplicaSet makes after that has another owner than the pods before it,
// whose processes may not have heard of it.
func TestANewPodGetsNoIDUnderWhichAnotherStillWorksForTheFormerOwner(t *testing.T) {
	b := newBench(t, 2)
	b.pod("old")
	b.api.Change("Pod", "old", func(o *unstructured.Unstructured) {
		locks := receipt.Receipt{UID: string(o.GetUID()), Owner: "Deployment/" + apifake.Worker, State: receipt.Locks, Share: receipt.Share{ID: 0}, Write: "w"}
		o.SetAnnotations(map[string]string{receipt.Key: locks.Encode()})
	})
	b.api.Change("ReplicaSet", "rs-1", func(o *unstructured.Unstructured) {
		o.SetOwnerReferences(nil)
		if err := unstructured.SetNestedField(o.Object, int64(2), "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
	})
	b.api.Remove(apifake.Deployment, apifake.Worker)
	b.pod("new")
	b.start("new", nil)
	b.until("the other id under the ReplicaSet", has(1))
	if !b.api.Await(t.Context(), func() bool {
		return assignment.Decode(b.api.Get("ReplicaSet", "rs-1").GetAnnotations()).State.Slots[0] == "old"
	}) {
		t.Error("the map does not say who locks id 0")
	}
	b.pod("third")
	b.start("third", nil)
	b.api.Change("Pod", "old", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	b.api.Remove("Pod", "old")
	b.until("its id when it is gone", has(0, 1))
}
