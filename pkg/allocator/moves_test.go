package allocator_test

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
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

// The row names the giver until somebody plans. If the giver cannot, the taker must, although it hears of nothing.
func TestAPartitionIsTakenAlthoughItsGiverOrItsTakerEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		ends  func(b *bench)
		takes string
		has   int
	}{
		"the giver freezes":    {func(b *bench) { <-b.t.Context().Done() }, "p1", 6},
		"the taker disappears": {func(b *bench) { b.api.Remove(apifake.Pods, "p1") }, "p0", 12},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			b.annotate(map[string]string{assignment.PartitionCountKey: "12", assignment.PartitionFailoverAfterKey: "1ms"})
			b.pod("p0")
			b.pod("p1")
			var once sync.Once
			b.start("p0", func(o *allocator.Options) {
				o.Divides, o.Observer = true, observer(func(e event.Event) {
					if _, is := e.(event.Yielded); is {
						once.Do(func() { tc.ends(b) })
					}
				})
			})
			b.until("all for one", func(now map[string]identity.Identity) bool { return now["p0"].Partitions.Owned().Len() == 12 })
			b.start("p1", func(o *allocator.Options) { o.Divides = true })
			b.until("the partitions of a live pod", func(now map[string]identity.Identity) bool { return now[tc.takes].Partitions.Owned().Len() == tc.has })
		})
	}
}
