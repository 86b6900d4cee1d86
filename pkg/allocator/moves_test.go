package allocator_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/apifake"
)

// Somebody deletes a Deployment without its ReplicaSet. A pod that the ReplicaSet makes after that has another owner than the pods before it,
// whose processes may not have heard of it.
func TestANewPodWaitsForThoseThatStillWorkUnderTheFormerOwner(t *testing.T) {
	b, said := newBench(t, 2), make(reasons, 99)
	b.pod("old")
	b.api.Change("Pod", "old", func(o *unstructured.Unstructured) {
		locks := receipt.Receipt{UID: string(o.GetUID()), Owner: "Deployment/" + apifake.Worker, State: receipt.Locks, Share: receipt.Share{ID: 0}, Write: "w"}
		o.SetAnnotations(map[string]string{receipt.Key: locks.Encode()})
	})
	b.api.Change("ReplicaSet", "rs-1", func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	b.api.Remove(apifake.Deployment, apifake.Worker)
	b.pod("new")
	b.start("new", func(o *allocator.Options) { o.Observer = said })
	for reason := range said {
		if strings.Contains(reason, "old") && strings.Contains(reason, "ReplicaSet/rs-1") {
			break
		}
	}
	if id := b.shows("new"); id.Assigned() {
		t.Errorf("it has %+v while another pod of the ReplicaSet works under the Deployment", id)
	}
	b.api.Change("Pod", "old", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	b.until("an id under the ReplicaSet", has(0))
}
