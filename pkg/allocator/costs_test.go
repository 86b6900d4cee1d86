package allocator_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/identity"
)

// verb returns "LIST pods" and the like, as kubectl calls them. A list that the API server may answer from its cache is "LIST pods since".
func verb(r *http.Request) string {
	_, rest, _ := strings.Cut(r.URL.Path, "/namespaces/")
	parts := strings.Split(rest, "/") // namespace, resource, name
	method := r.Method
	switch {
	case method != http.MethodGet:
	case r.URL.Query().Get("watch") != "":
		method = "WATCH"
	case len(parts) == 2:
		method = "LIST"
	}
	if method == "LIST" && r.URL.Query().Get("resourceVersion") != "" {
		parts[1] += " since"
	}
	return method + " " + parts[1]
}

// A pod claims, a second one takes what the plan of the first gave it, and both hold their slots.
func TestWhatItCostsWithoutPartitions(t *testing.T) {
	b := newBench(t, 2)
	b.clk = clock.RealClock{}
	var mu sync.Mutex
	asked := map[string]int{}
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		asked[verb(r)]++
		b.ring()
		return false
	})
	b.pod("p0")
	b.pod("p1")
	for pod, want := range []map[string]int{
		{ // it resolves its owner, plans for both with two lists, and takes with the third (T3)
			"GET pods": 1, "GET replicasets": 1, "LIST pods": 2, "LIST pods since": 1, "PATCH deployments": 1, "PATCH pods": 1, "WATCH deployments": 1, "WATCH pods": 1,
		},
		{ // the map names it already
			"GET pods": 1, "GET replicasets": 1, "GET deployments": 1, "LIST pods since": 1, "PATCH pods": 1, "WATCH deployments": 1, "WATCH pods": 1,
		},
	} {
		b.works(fmt.Sprint("p", pod), nil)
		b.until(fmt.Sprint("these requests: ", want), func(map[string]identity.Identity) bool {
			mu.Lock()
			defer mu.Unlock()
			now := maps.Clone(asked)
			if now["PATCH deployments"] == 1 && now["GET deployments"] <= 3 { // a planner reads the owner again where the server is slow
				delete(now, "GET deployments")
			}
			return maps.Equal(now, want)
		})
		mu.Lock()
		clear(asked)
		mu.Unlock()
	}
	b.scale(3)
	b.until("the count", func(now map[string]identity.Identity) bool { return now["p0"].Count == 3 && now["p1"].Count == 3 })
	mu.Lock()
	defer mu.Unlock()
	if len(asked) > 0 {
		t.Errorf("a holder hears what it needs by its watches, and asked for %v", asked)
	}
}
