package executor

import (
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

func TestTheAnnotationSaysHowManyIDsMayBeWithoutAPod(t *testing.T) {
	for text, want := range map[string]int{"": 1, "2": 2, "25%": 2, "5%": 1, "100%": 10, "never": 0, "0": 0, "0%": 0, "-1": 1, "some": 1} {
		if got := limit(ownerOf(t, "apps/v1", store.Deployment, map[string]string{EvictKey: text})); got != want {
			t.Errorf("%q of 10: %d, want %d", text, got, want)
		}
	}
}

func TestNoPodOfAJobAndOfAFurtherKindIsRemoved(t *testing.T) {
	for kind, want := range map[string]int{
		"apps/v1 Deployment": 1, "apps/v1 StatefulSet": 1, "apps/v1 ReplicaSet": 1, "batch/v1 Job": 0, "argoproj.io/v1alpha1 Rollout": 0, "apps.kruise.io/v1beta1 StatefulSet": 0,
	} {
		version, name, _ := strings.Cut(kind, " ")
		if got := limit(ownerOf(t, version, name, nil)); got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
}

// ownerOf returns an owner with a count of 10.
func ownerOf(t *testing.T, version, kind string, annotations map[string]string) store.Owner {
	t.Helper()
	ref, known := store.NewRef(version, kind, "shop", "worker", "rollouts.argoproj.io", "statefulsets.apps.kruise.io")
	if !known {
		t.Fatalf("%s %s is not known", version, kind)
	}
	return store.Owner{Ref: ref, Count: 10, Annotations: annotations}
}
