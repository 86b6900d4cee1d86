package inspect

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// An admission webhook removes all that pods write on themselves and on the owner.
func TestAWorkloadWhosePodsRunIdallocAndHaveNothingOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(o *unstructured.Unstructured)
		age    time.Duration
		runs   bool
	}{
		"the sidecar":       {container("initContainers", "example.com:5000/idalloc:v1@sha256:0", nil, "watch"), time.Hour, true},
		"idalloc run":       {container("containers", "app", []any{"/bin/idalloc"}, "run"), time.Hour, true},
		"the label":         {func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"idalloc.dev/inject": "true"}) }, time.Hour, true},
		"a pod that starts": {container("containers", "x/idalloc", nil), time.Second, false},
		"another program":   {container("containers", "x/idalloc", []any{"sh"}), time.Hour, false},
		"a pod that has ended": {func(o *unstructured.Unstructured) {
			o.Object["status"] = map[string]any{"phase": "Failed"}
			container("containers", "x/idalloc", nil)(o)
		}, time.Hour, false},
	} {
		n := settledPods(1)
		n.owner.Record, n.owner.Rollout.MaxUnavailable, n.now = assignment.Record{}, 0, time.Unix(10000, 0)
		o := &unstructured.Unstructured{Object: map[string]any{metadata: map[string]any{"name": "a"}}}
		o.SetCreationTimestamp(metav1.NewTime(n.now.Add(-tc.age)))
		tc.change(o)
		n.pods["a"] = newPod(o, n.owner, true)
		r := reported(n)
		said := len(r.Findings) == 1 && strings.Contains(r.Findings[0].Detail, "it may not reach the API server. Otherwise an admission webhook or policy removes idalloc.dev/*")
		if r.OK == tc.runs || r.Unused == tc.runs || said != tc.runs || len(r.Warnings) > 0 == tc.runs {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func container(field, image string, command []any, args ...any) func(o *unstructured.Unstructured) {
	c := map[string]any{"image": image, "command": command, "args": args}
	return func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{field: []any{c}} }
}
