package allocator_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// shift has the ordinals of a StatefulSet with two pods begin with 1. With the policy OrderedReady, Kubernetes removes worker-0 only when worker-2
// is Ready, which it is not without an id.
func (b *bench) shift(handsOver bool, observer event.Observer) {
	set := apifake.Owner(2)
	set.SetKind(store.StatefulSet)
	b.api.Put(set)
	start := func(name string) {
		o := apifake.Pod(name)
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apifake.Apps, Kind: store.StatefulSet, Name: apifake.Worker, UID: apifake.OwnerUID, Controller: new(true)}})
		b.api.Put(o)
		b.start(name, func(o *allocator.Options) { o.HandsOver, o.Observer = handsOver, observer })
	}
	start("worker-0")
	start("worker-1")
	b.until("two ids", has(0, 1))
	b.api.Change(store.StatefulSet, apifake.Worker, func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, int64(1), "spec", "ordinals", "start"); err != nil {
			b.t.Error(err)
		}
	})
	start("worker-2")
}

func TestAPodWhoseOrdinalIsNoneAnyMoreHandsItsIDOver(t *testing.T) {
	b := newBench(t, 2)
	b.shift(true, nil)
	b.until("the id of worker-0 for worker-2", func(now map[string]identity.Identity) bool {
		return now["worker-2"].Assigned() && now["worker-2"].ID == 0 && now["worker-1"].ID == 1 && !now["worker-0"].Assigned()
	})
}

type reasons chan string

func (r reasons) Observe(e event.Event) {
	if w, is := e.(event.Waiting); is {
		r <- w.Reason
	}
}

func TestAWaiterSaysWhichPodsToDelete(t *testing.T) {
	b, said := newBench(t, 2), make(reasons, 99)
	b.shift(false, said)
	for reason := range said {
		if strings.Contains(reason, "StatefulSet/worker has the ordinals 1 to 2 now") && strings.Contains(reason, "delete them") {
			return
		}
	}
}
