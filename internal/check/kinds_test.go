package check

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
)

// The controller runs without a kind that was deleted, so nothing else tells of it.
func TestAKindThatTheClusterDoesNotHaveIsMissing(t *testing.T) {
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "rollouts.argoproj.io"},
	}}
	controller := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"args": []any{"--namespace=shop", "--kind=rollouts.argoproj.io", "--kind=clonesets.apps.kruise.io"}}},
	}}}}}
	c := checker{Options{Dynamic: fake.NewSimpleDynamicClient(runtime.NewScheme(), definition)}}
	rows, err := c.kinds(t.Context(), found{kinds: flags(controller, "kind")})
	if err != nil {
		t.Fatal(err)
	}
	states := make([]string, 0, len(rows))
	for _, r := range rows {
		states = append(states, r.Part+": "+string(r.State))
	}
	if got, want := strings.Join(states, "; "), "kind rollouts.argoproj.io: in force; kind clonesets.apps.kruise.io: missing"; got != want {
		t.Errorf("rows are %s, want %s", got, want)
	}
}
