package reconciler

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

func TestTheOwnerThatAReceiptNamesIsFoundByGroupAndKind(t *testing.T) {
	kinds := Kinds{
		{Group: "apps", Version: "v1", Kind: store.StatefulSet}: "", {Group: "apps.kruise.io", Version: "v1beta1", Kind: store.StatefulSet}: "statefulsets",
		{Group: "jobset.x-k8s.io", Version: "v1", Kind: "JobSet"}: "jobsets", {Group: "batch", Version: "v1", Kind: store.Job}: "",
	}
	for range 100 { // maps have no order
		for gvk, resource := range kinds {
			want, known := kinds.ref(schema.GroupVersion{Group: gvk.Group, Version: "v0"}.String(), gvk.Kind, "shop", worker)
			if !known || want.Resource != resource || want.APIVersion != gvk.GroupVersion().String() {
				t.Fatalf("%s is %+v, %t", gvk, want, known)
			}
			if got, known := kinds.parse(want.String(), "shop"); !known || got != want {
				t.Fatalf("%s is %+v, %t, want %+v", want, got, known, want)
			}
		}
	}
	if got, known := kinds.parse("StatefulSet.example.com/worker", "shop"); known {
		t.Errorf("a kind that the controller does not know is %+v", got)
	}
}
