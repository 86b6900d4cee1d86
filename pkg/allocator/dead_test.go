package allocator_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/apifake"
)

// names has the map name these pods, beside what it says, and the status count that many pods, three of which are Ready.
func (b *bench) names(pods map[int]string, count, live int64) {
	b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		a := o.GetAnnotations()
		slots := assignment.Decode(a).State.Slots
		maps.Copy(slots, pods)
		a[assignment.Key] = slots.Encode()
		o.SetAnnotations(a)
		o.Object["status"] = map[string]any{"replicas": live, "readyReplicas": min(live, 3)}
		if err := unstructured.SetNestedField(o.Object, count, "spec", "replicas"); err != nil {
			b.t.Error(err)
		}
	})
}

// No pod waits for the slots of pods that are gone. The map names live pods only all the same, by one write for all of them.
func TestTheMapNamesLivePodsOnlyAfterTheLastDeadOneIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		count   int64
		dead    map[int]string
		live    int64
		divides bool
	}{
		"above the count, as after a scale-down":         {3, map[int]string{3: "d3", 4: "d4", 5: "d5", 6: "d6", 7: "d7"}, 3, false},
		"below the count, as at the end of a Job":        {8, map[int]string{3: "d3", 5: "d5", 7: "d7"}, 3, false},
		"above the count, of a workload with partitions": {3, map[int]string{3: "d3", 4: "d4", 5: "d5", 6: "d6", 7: "d7"}, 3, true},
		"another pod is there, which does not start":     {4, map[int]string{3: "d3"}, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 3)
			if tc.divides {
				b.annotate(map[string]string{assignment.PartitionCountKey: "12"})
			}
			for i := range 3 {
				b.pod(fmt.Sprint("p", i))
				b.start(fmt.Sprint("p", i), func(o *allocator.Options) { o.Divides = tc.divides })
			}
			b.until("three ids", has(0, 1, 2))
			if tc.divides {
				b.until("all partitions are worked on", func(now map[string]identity.Identity) bool {
					all := placement.Set{}
					for _, id := range now {
						all = all.Union(id.Partitions.Owned())
					}
					return len(ids(now)) == 3 && all.Len() == 12
				})
			}
			writes := b.times(asks(http.MethodPatch, "/deployments/worker"))
			b.names(tc.dead, tc.count, tc.live)
			b.await("the map names live pods only", func() bool {
				return len(assignment.Decode(b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()).State.Slots) == 3
			})
			if n := len(writes); n == 0 || n > 3 { // all pods may plan at the same moment, and all writes but one are in vain
				t.Errorf("%d writes take the dead pods out of the map, want one", n)
			}
		})
	}
}

// A status that leaves out pods that the map names rightly, because they end or were relabelled, makes no pod list again and again.
func TestPodsThatTheStatusLacksAreListedForSeldom(t *testing.T) {
	b := newBench(t, 2)
	for i := range 2 {
		b.pod(fmt.Sprint("p", i))
		b.start(fmt.Sprint("p", i), nil)
	}
	b.until("two ids", has(0, 1))
	lists := b.times(func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("watch") == ""
	})
	b.names(nil, 2, 1)
	seldom(t, 2*time.Minute, lists)
}
