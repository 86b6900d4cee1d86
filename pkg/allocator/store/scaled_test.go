package store

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestParseFurther(t *testing.T) {
	served := map[string]any{
		"/apis/argoproj.io":    metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "argoproj.io/v2"}, {GroupVersion: "argoproj.io/v1"}}},
		"/apis/argoproj.io/v2": metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "workflows", Kind: "Workflow"}}},
		"/apis/argoproj.io/v1": metav1.APIResourceList{APIResources: []metav1.APIResource{
			{Name: "rollouts/scale", Kind: "Scale"}, {Name: "rollouts", SingularName: "rollout", ShortNames: []string{"ro"}, Kind: "Rollout"},
		}},
	}
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		if answer, there := served[r.URL.Path]; there {
			send(w, answer)
			return
		}
		http.NotFound(w, r)
	})
	want := Ref{"argoproj.io/v1", "Rollout", "shop", testName, "rollouts"}
	for _, text := range []string{"rollout/worker", "Rollout/worker", "rollouts/worker", "ro/worker", "rollouts.argoproj.io/worker"} {
		if got, ok, err := s.ParseFurther(t.Context(), text, "shop", "rollouts.argoproj.io"); err != nil || !ok || got != want {
			t.Errorf("%s is %+v, %t, %v", text, got, ok, err)
		}
	}
	for _, text := range []string{"", "rollout", "rollout/", "workflow/worker", "rollouts.example.com/worker", "scale/worker"} {
		if got, ok, err := s.ParseFurther(t.Context(), text, "shop", "rollouts.argoproj.io"); err != nil || ok {
			t.Errorf("%q is %+v, %t, %v", text, got, ok, err)
		}
	}
	if _, _, err := s.ParseFurther(t.Context(), "cloneset/worker", "shop", "clonesets.apps.kruise.io"); err == nil {
		t.Error("a kind that the cluster does not have is found")
	}
}
