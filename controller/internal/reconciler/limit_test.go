package reconciler

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

func TestNoPodOfAJobAndOfAFurtherKindIsRemoved(t *testing.T) {
	further := []kinds.Kind{
		kinds.Scaled(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, "rollouts"),
		kinds.Scaled(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"}, "statefulsets"),
	}
	for kind, want := range map[string]int{
		"apps/v1 Deployment": 1, "apps/v1 StatefulSet": 1, "apps/v1 ReplicaSet": 1, "batch/v1 Job": 0, "argoproj.io/v1alpha1 Rollout": 0, "apps.kruise.io/v1beta1 StatefulSet": 0,
	} {
		version, name, _ := strings.Cut(kind, " ")
		ref, known := kinds.NewRef(version, name, "shop", worker, further...)
		if !known {
			t.Fatalf("%s is not known", kind)
		}
		if got := limit(store.Owner{Ref: ref, Count: 10}); got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
}
