package store

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

func TestFurther(t *testing.T) {
	served := map[string]any{
		"/apis/argoproj.io":    metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "argoproj.io/v2"}, {GroupVersion: "argoproj.io/v1"}}},
		"/apis/argoproj.io/v2": metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "workflows", Kind: "Workflow"}}},
		"/apis/argoproj.io/v1": metav1.APIResourceList{APIResources: []metav1.APIResource{
			{Name: "rollouts/scale", Kind: "Scale"}, {Name: "rollouts", SingularName: "rollout", ShortNames: []string{"ro"}, Kind: "Rollout"},
		}},
		"/apis/example.com":    metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "example.com/v1"}}},
		"/apis/example.com/v1": metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "proxies", SingularName: "proxy", Kind: "Proxy"}, {Name: "indices", Kind: "Index"}}},
		"/apis/apps.kruise.io": metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps.kruise.io/v1"}}},
		"/apis/apps.kruise.io/v1": metav1.APIResourceList{APIResources: []metav1.APIResource{
			{Name: "statefulsets", SingularName: "statefulset", Kind: kinds.StatefulSet},
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
	further, err := s.Further(t.Context(), "rollouts.argoproj.io", "proxies.example.com", "indices.example.com", "statefulsets.apps.kruise.io")
	if err != nil {
		t.Fatal(err)
	}
	ref := func(apiVersion, kind, resource string) kinds.Ref {
		return kinds.Ref{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: testName, Resource: resource}
	}
	rollout := ref("argoproj.io/v1", "Rollout", "rollouts")
	for text, want := range map[string]kinds.Ref{
		"rollout/worker": rollout, "Rollout/worker": rollout, "rollouts/worker": rollout, "ro/worker": rollout, "rollouts.argoproj.io/worker": rollout,
		"proxy/worker": ref("example.com/v1", "Proxy", "proxies"), "indices/worker": ref("example.com/v1", "Index", "indices"),
		"statefulset.apps.kruise.io/worker": ref("apps.kruise.io/v1", kinds.StatefulSet, "statefulsets"),
	} {
		if got, ok := further.Parse(text, "shop"); !ok || got != want {
			t.Errorf("%s is %+v, %t", text, got, ok)
		}
		if got, ok := kinds.NewRef(want.APIVersion, want.Kind, "shop", testName, further...); !ok || got != want {
			t.Errorf("%s %s is %+v, %t", want.APIVersion, want.Kind, got, ok)
		}
	}
	if got, ok := kinds.NewRef("apps/v1", kinds.StatefulSet, "shop", testName, further...); !ok || got != ref("apps/v1", kinds.StatefulSet, "") {
		t.Errorf("a StatefulSet is %+v, %t", got, ok)
	}
	if got, ok := kinds.NewRef("argoproj.io/v2", "Rollout", "shop", testName, further...); !ok || got != rollout {
		t.Errorf("a Rollout of another version is %+v, %t", got, ok)
	}
	for _, text := range []string{"", "rollout", "rollout/", "workflow/worker", "rollouts.example.com/worker", "scale/worker"} {
		if got, ok := further.Parse(text, "shop"); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
	for _, missing := range []string{"clonesets.unknown.io", "rollout.argoproj.io", "rollouts/scale.argoproj.io2"} {
		if _, err := s.Further(t.Context(), missing); err == nil {
			t.Errorf("%s, which the cluster does not have, is found", missing)
		}
	}
}
