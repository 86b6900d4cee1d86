package allocator_test

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/apifake"
)

// primary has two pods divide twelve partitions by primary, with further wishes.
func (b *bench) primary(wishes map[string]string, second func(*allocator.Options)) (home *process) {
	b.t.Helper()
	all := map[string]string{assignment.PartitionCountKey: "12", assignment.PartitionStrategyKey: placement.NamePrimary}
	maps.Copy(all, wishes)
	b.annotate(all)
	b.pod("p0")
	b.pod("p1")
	b.start("p0", divides)
	b.until("all for one", worksOn("p0", 12))
	home = b.start("p1", second)
	b.until("a half for each", halves(12))
	return home
}

// A year of failover-after has nothing to do with the way back.
func TestAHomeGetsItsPartitionsBackWhateverFailoverAfterIs(t *testing.T) {
	newBench(t, 2).primary(map[string]string{assignment.PartitionFailoverAfterKey: "10000h"}, divides)
}

// The pod that ends tells in one write that its slot is free, and that others get its partitions.
func TestADeletedPrimaryFailsOverWithItsLastWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		wishes map[string]string
		reason string
		want   bool
	}{
		"by default":               {reason: "NewReplicaSetAvailable", want: true},
		"the user has said a time": {wishes: map[string]string{assignment.PartitionFailoverAfterKey: "10000h"}, reason: "NewReplicaSetAvailable"},
		"never":                    {wishes: map[string]string{assignment.PartitionFailoverAfterKey: assignment.Never}, reason: "NewReplicaSetAvailable"},
		"during a rolling update":  {reason: "ReplicaSetUpdated"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			b.api.Change("Deployment", "worker", func(o *unstructured.Unstructured) {
				o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Progressing", "reason": tc.reason}}}
			})
			var over atomic.Bool
			home := b.primary(tc.wishes, func(o *allocator.Options) {
				o.Divides, o.Observer = true, on(func(_ event.FailedOver) { over.Store(true) })
			})
			b.api.Change("Pod", "p1", func(o *unstructured.Unstructured) {
				end := metav1.NewTime(b.clk.Now().Add(1 << 40))
				o.SetDeletionTimestamp(&end)
			})
			home.release()
			if over.Load() != tc.want {
				t.Errorf("the partitions went to the stand-in: %v, want %v", over.Load(), tc.want)
			}
		})
	}
}

// Each process dies without a word soon after it has got its partitions, as one does that the kernel kills. The pod is not replaced.
func TestALinkedProgramThatDiesAgainAndAgainRests(t *testing.T) {
	b := newBench(t, 2)
	crashes := func(o *allocator.Options) { o.Divides, o.RestsAfterFailures = true, true }
	p := b.primary(nil, crashes)
	for range 2 {
		p.kill()
		p = b.start("p1", crashes)
		b.until("its half again", worksOn("p1", 6))
	}
	p.kill()
	b.start("p1", crashes)
	b.until("the other pod works on all", worksOn("p0", 12))
}

// The replacement gets the map's entry, and nothing comes of it: its image cannot be pulled, or its program hangs before it takes the slot.
func TestOthersGetWhatAReplacementNeverTakes(t *testing.T) {
	for name, tc := range map[string]struct {
		wishes map[string]string
		hangs  bool
	}{
		"by default":                               {},
		"with primary and a time":                  {wishes: map[string]string{assignment.PartitionStrategyKey: placement.NamePrimary, assignment.PartitionFailoverAfterKey: "40s"}},
		"its program hangs before it takes a slot": {hangs: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			wishes := map[string]string{assignment.PartitionCountKey: "12"}
			maps.Copy(wishes, tc.wishes)
			b.annotate(wishes)
			b.pod("p0")
			b.pod("p1")
			b.start("p0", divides)
			home := b.start("p1", divides)
			b.until("a half for each", halves(12))
			b.pod("p2")
			if tc.hangs {
				b.receipt("p2", receipt.Receipt{State: receipt.Waits})
			}
			home.kill()
			b.api.Remove(apifake.Pods, "p1")
			b.until("all for the one that works", worksOn("p0", 12))
			if got := assignment.Decode(b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()).State.Slots[1]; got != "p2" {
				t.Errorf("slot 1 is proposed to %q, want p2", got)
			}
			b.start("p2", divides)
			b.until("a half for the replacement that starts after all", worksOn("p2", 6))
		})
	}
}

// A plan about partitions that changes nothing is made again after a time that grows with the pods. A scale-down that leaves a row to an id that no pod has
// is news: the partitions rest until a plan.
func TestPartitionsOfAnIDAboveTheCountDoNotWaitForAPlanThatWasInVain(t *testing.T) {
	const count = 200
	b := newBench(t, count)
	slots := assignment.Slots{0: "p0", 1: "p1", count: "third", count + 1: "last"}
	for id := 2; id < count; id++ {
		slots[id] = fmt.Sprint("idle-", id)
		b.locks(slots[id], receipt.Share{ID: id})
	}
	b.locks("p1", receipt.Share{ID: 1, Of: 6})
	b.locks("third", receipt.Share{ID: count, Of: 6, Partitions: placement.Between(2, 2)}) // these let nothing go yet
	b.locks("last", receipt.Share{ID: count + 1, Of: 6, Partitions: placement.Between(3, 5)})
	b.annotate(map[string]string{
		assignment.PartitionCountKey: "6", assignment.PartitionStrategyKey: "range", assignment.Key: slots.Encode(),
		assignment.PartitionOwnersKey: fmt.Sprintf(`{"count":6,"strategy":"range","owners":{"0":"0-1","1":"","%d":"2","%d":"3-5"}}`, count, count+1),
	})
	planned := make(chan struct{}, 1)
	b.works("p0", func(o *allocator.Options) {
		o.Divides, o.Observer = true, on(func(event.Planned) { note(planned, struct{}{}) })
	})
	<-planned
	row := func() placement.Owners {
		return assignment.Decode(b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()).State.Row.Owners
	}
	b.api.Remove(apifake.Pods, "last")
	b.edit(apifake.Deployment, apifake.Worker, func(a map[string]string) {
		delete(slots, count+1)
		a[assignment.Key] = slots.Encode()
	})
	b.await("the row names no id that no pod has", func() bool { return row()[count+1].Empty() })
}
