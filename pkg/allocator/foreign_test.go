package allocator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/test/apifake"
)

// A pod that is not the workload's, be it relabelled or a thief's, keeps no pod from the other slots. Each pod whose plan meets it says so once.
func TestAForeignPodLocksItsSlotAloneAndIsNamedOnce(t *testing.T) {
	b := newBench(t, 2)
	foreign := apifake.Holding("x", 0)
	told := make(chan string, 99)
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events") {
			if text := b.sends(r); strings.Contains(text, `"SlotLockedByForeignPod"`) {
				told <- text
			}
		}
		return false
	})
	b.api.Put(apifake.Released(foreign))
	b.works("p0", nil)
	b.until("the other slot", has(1))
	planned := make(chan event.Planned, 99)
	b.pod("p1")
	b.start("p1", func(o *allocator.Options) {
		o.Observer = on(func(e event.Planned) { planned <- e })
	})
	for range 4 { // p1 waits, and plans again and again
		if p := <-planned; len(p.Foreign) != 1 || p.Foreign[0].Pod != "x" || p.Foreign[0].ID != 0 {
			t.Fatalf("the plan meets %+v", p.Foreign)
		}
	}
	b.api.Remove(apifake.Pods, "x")
	b.until("its slot when it is gone", has(0, 1))
	if first := <-told; !strings.Contains(first, "pod x (id 0)") || !strings.Contains(first, `"kind":"Deployment","name":"worker"`) {
		t.Errorf("the Event is %s", first)
	}
	if more := len(told); more > 1 { // p1 does not know that p0 has told it
		t.Errorf("two pods left %d Events", more+1)
	}
}
