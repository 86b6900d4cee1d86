package gc

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// In strict mode the slot of a holder that has ended is given at once, so a kubelet must have seen the end of all that ran.
func TestOnlyAKubeletsWordIsAnEnd(t *testing.T) {
	status := func(name, state, reason string) any {
		return map[string]any{"name": name, "state": map[string]any{state: map[string]any{reasonField: reason}}}
	}
	done, sidecar := status("main", "terminated", "Error"), status("idalloc", "terminated", "Completed")
	for name, tc := range map[string]struct {
		main, init, ephemeral []any
		want                  bool
	}{
		"all have ended":                     {main: []any{done}, init: []any{sidecar}, want: true},
		"the sidecar still runs":             {main: []any{done}, init: []any{status("idalloc", "running", "")}},
		"a container still runs":             {main: []any{status("main", "running", "")}, init: []any{sidecar}},
		"a container is to start again":      {main: []any{status("main", "waiting", "CrashLoopBackOff")}, init: []any{sidecar}},
		"nobody knows how a container fared": {main: []any{status("main", "terminated", "ContainerStatusUnknown")}, init: []any{sidecar}},
		"a rejected pod":                     {},
		"a container is not mentioned":       {main: []any{done}},
		"a debug container still runs":       {main: []any{done}, init: []any{sidecar}, ephemeral: []any{status("debug", "running", "")}},
		"what cannot be read":                {main: []any{"?"}, init: []any{sidecar}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &unstructured.Unstructured{Object: map[string]any{
				"spec": map[string]any{
					"initContainers": []any{map[string]any{"name": "idalloc"}}, "containers": []any{map[string]any{"name": "main"}},
				},
				statusField: map[string]any{
					"phase": "Failed", "containerStatuses": tc.main, "initContainerStatuses": tc.init, "ephemeralContainerStatuses": tc.ephemeral,
				},
			}}
			if got := allTerminated(pod); got != tc.want {
				t.Errorf("allTerminated = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAPodOfNoContainersHasNotEnded(t *testing.T) {
	if allTerminated(&unstructured.Unstructured{Object: map[string]any{statusField: map[string]any{"phase": "Failed"}}}) {
		t.Error("nobody said that anything ended")
	}
}
