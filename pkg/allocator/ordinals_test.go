package allocator_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// ordered starts a pod of a StatefulSet.
func (b *bench) ordered(name string, change func(*allocator.Options)) {
	o := apifake.Pod(name)
	o.SetOwnerReferences(apifake.ControlledBy(kinds.StatefulSet, apifake.Worker, apifake.OwnerUID))
	b.api.Put(o)
	b.start(name, change)
}

// set changes a number in the spec of the StatefulSet.
func (b *bench) set(number int64, field ...string) {
	b.api.Change(kinds.StatefulSet, apifake.Worker, func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, number, append([]string{"spec"}, field...)...); err != nil {
			b.t.Error(err)
		}
	})
}

// pair starts the two pods of a StatefulSet.
func (b *bench) pair(change func(*allocator.Options)) {
	set := apifake.Owner(2)
	set.SetKind(kinds.StatefulSet)
	b.api.Put(set)
	b.ordered("worker-0", change)
	b.ordered("worker-1", change)
	b.until("two ids", has(0, 1))
}

// shift has the ordinals begin with 1. With the policy OrderedReady, Kubernetes removes worker-0 only when worker-2 is Ready, which it is not
// without an id.
func (b *bench) shift(handsOver bool, observer event.Observer) {
	change := func(o *allocator.Options) { o.HandsOver, o.Observer = handsOver, observer }
	b.pair(change)
	b.set(1, "ordinals", "start")
	b.ordered("worker-2", change)
}

func TestAPodWhoseOrdinalIsNoneAnyMoreHandsItsIDOver(t *testing.T) {
	b := newBench(t, 2)
	b.shift(true, nil)
	b.until("the id of worker-0 for worker-2", func(now map[string]identity.Identity) bool {
		return now["worker-2"].Assigned() && now["worker-2"].ID == 0 && now["worker-1"].ID == 1 && !now["worker-0"].Assigned()
	})
}

func TestAWaiterSaysWhichPodsToDelete(t *testing.T) {
	b, said := newBench(t, 2), make(chan string, 99)
	b.shift(false, on(func(e event.Waiting) { said <- e.Reason }))
	for reason := range said {
		if strings.Contains(reason, "StatefulSet/worker has the ordinals 1 to 2 now") && strings.Contains(reason, "delete them") {
			return
		}
	}
}

// With the policy OrderedReady, Kubernetes removes pods one after the other, and only those that are Ready.
func TestAPodKeepsItsIDUntilKubernetesRemovesIt(t *testing.T) {
	b := newBench(t, 2)
	b.pair(nil)
	was := b.shows("worker-1")
	b.set(1, "replicas")
	b.until("the new count", func(now map[string]identity.Identity) bool { return now["worker-0"].Count == 1 })
	b.api.Change(kinds.StatefulSet, apifake.Worker, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{assignment.Key: "{}"})
	})
	named := func() bool {
		record := assignment.Decode(b.api.Get(kinds.StatefulSet, apifake.Worker).GetAnnotations())
		return record.State.Slots[1] == "worker-1"
	}
	if !b.api.Await(t.Context(), named) || b.shows("worker-1") != was {
		t.Errorf("worker-1 was %v and is %v", was, b.shows("worker-1"))
	}
}
