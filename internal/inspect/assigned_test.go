package inspect

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// asks adds pod z, which waits for an id of the controller.
func (n snapshot) asks() {
	n.add("z")
	n.edit("z", func(p *pod) { p.byController, p.gated, p.phase = true, true, "Pending" })
}

// blocks has the Deployment wait for new pods before it ends old ones, which are of the revision old and have their ids from the controller.
func (n *snapshot) blocks() {
	n.owner.Rollout = store.Rollout{}
	n.rollout.current = "5d9"
	for name := range n.pods {
		n.edit(name, func(p *pod) { p.byController, p.given, p.revision, p.controller = true, "0", "old", "worker-old" })
	}
	n.asks()
}

func TestWhatVerifyFindsAboutPodsOfTheController(t *testing.T) {
	checkAll(t, map[string]checked{
		"a pod waits, and all ids are held": {change: func(n *snapshot) { n.asks() }},
		"a pod waits, and an id is free": {
			change: func(n *snapshot) { n.free(1); n.asks() },
			want:   []brief{{Ungiven, 1, "z"}}, says: []string{"waits behind its scheduling gate", "`kubectl idalloc check`"},
		},
		"a pod has another gate, too": {change: func(n *snapshot) {
			n.free(1)
			n.asks()
			n.edit("z", func(p *pod) { p.gates = []string{"example.com/quota"} })
		}},
		"a pod runs without an id": {
			change: func(n *snapshot) { n.asks(); n.edit("z", func(p *pod) { p.gated = false }) },
			want:   []brief{{Ungated, -1, "z"}}, says: []string{"its program runs without an id", "kubectl delete pod z -n shop"},
		},
		"a pod was proposed an id long ago": {
			change: func(n *snapshot) {
				n.free(1)
				n.asks()
				n.name(1, "z")
				n.written, n.now = time.Unix(1, 0), time.Unix(100, 0)
			},
			want: []brief{{NotGiven, 1, "z"}}, says: []string{"idalloc-controller has not locked it"},
		},
		"a rolling update whose old pods the controller removes": {change: (*snapshot).blocks},
		"a rolling update whose old pods it may not remove": {
			change: func(n *snapshot) { n.blocks(); n.evict = never },
			want:   []brief{{Stuck, -1, "z"}}, says: []string{"remove annotation idalloc.dev/evict"},
		},
	})
}

func TestWhatAPodOfTheControllerWaitsFor(t *testing.T) {
	n := settledPods(2)
	n.asks()
	if text := n.explain("z").Text(); !strings.Contains(text, "behind the scheduling gate idalloc.dev/id") || strings.Contains(text, "has written nothing on the pod") {
		t.Error(text)
	}
	n.edit("z", func(p *pod) { p.gates = []string{"example.com/quota"} })
	if text := n.explain("z").Text(); !strings.Contains(text, "other scheduling gates (example.com/quota)") {
		t.Error(text)
	}
}

func TestWhatAPodShowsOfTheController(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"idalloc.dev/assign": "controller"}, "annotations": map[string]any{"idalloc.dev/id": "3"}},
		"spec":     map[string]any{"schedulingGates": []any{map[string]any{"name": "example.com/x"}, map[string]any{"name": "idalloc.dev/id"}}},
	}}
	if a := assignedOf(u); !a.byController || !a.gated || a.given != "3" || strings.Join(a.gates, ",") != "example.com/x" {
		t.Errorf("%+v", a)
	}
	if a := assignedOf(&unstructured.Unstructured{Object: map[string]any{}}); a.byController || a.gated || a.given != "" || len(a.gates) > 0 {
		t.Errorf("%+v", a)
	}
}
