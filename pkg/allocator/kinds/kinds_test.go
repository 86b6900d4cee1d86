package kinds

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const worker = "worker"

const appsV1 = "apps/v1"

func TestParse(t *testing.T) {
	for text, want := range map[string]Ref{
		"deployment/worker": {appsV1, Deployment, "shop", worker, ""}, "deploy/worker": {appsV1, Deployment, "shop", worker, ""},
		"Deployments.apps/worker": {appsV1, Deployment, "shop", worker, ""}, "deployments.v1.apps/worker": {appsV1, Deployment, "shop", worker, ""},
		"sts/worker": {appsV1, StatefulSet, "shop", worker, ""}, "rs/worker": {appsV1, ReplicaSet, "shop", worker, ""},
		"job/worker": {"batch/v1", Job, "shop", worker, ""}, "jobs.batch/worker": {"batch/v1", Job, "shop", worker, ""},
	} {
		if got, ok := BuiltIn().Parse(text, "shop"); !ok || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", worker, "deployment", "deployment/", "/worker", "deployment/worker/x", "deployments.batch/worker", "pod/worker", "daemonset/worker", "deployment/" + strings.Repeat("n", longestName+1)} {
		if got, ok := BuiltIn().Parse(text, "shop"); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestRef(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind string
		ok               bool
	}{
		"a Deployment":    {appsV1, Deployment, true},
		"a Job":           {"batch/v1", Job, true},
		"another version": {"apps/v2", Deployment, true},
		"another group":   {"example.com/v1", Deployment, false},
		"another kind":    {appsV1, "DaemonSet", false},
		"a kind of none":  {"/v1", "Node", false},
	} {
		is := map[string]string{Deployment: appsV1, Job: "batch/v1"}
		ref, ok := BuiltIn().Ref(tc.apiVersion, tc.kind, "shop", worker)
		if want := (Ref{is[tc.kind], tc.kind, "shop", worker, ""}); ok != tc.ok || (ok && ref != want) {
			t.Errorf("%s: %+v, %t", name, ref, ok)
		}
	}
}

// A kind is its group and its name. Two kinds may have one name, and a resource is no kind with an s.
func TestKindsOfOneNameAreTwo(t *testing.T) {
	kruise, proxies := schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: StatefulSet}, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Proxy"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kruise, meta.RESTScopeNamespace)
	mapper.Add(proxies, meta.RESTScopeNamespace)
	all, missing, err := BuiltIn().Find(mapper, "statefulsets.apps.kruise.io", "proxies.example.com", "rollouts.argoproj.io")
	if err != nil || len(missing) != 1 || missing[0] != "rollouts.argoproj.io" || len(all) != len(BuiltIn())+2 {
		t.Fatalf("%v, missing %q, %v", all, missing, err)
	}
	for text, want := range map[string]Ref{
		"StatefulSet/worker":                {appsV1, StatefulSet, "shop", worker, ""},
		"StatefulSet.apps.kruise.io/worker": {"apps.kruise.io/v1beta1", StatefulSet, "shop", worker, "statefulsets"},
		"Proxy.example.com/worker":          {"example.com/v1", "Proxy", "shop", worker, "proxies"},
	} {
		ref, ok := all.Parse(text, "shop")
		if !ok || ref != want || ref.String() != text {
			t.Errorf("%s is %+v, want %+v", text, ref, want)
		}
		if again, ok := all.Ref(want.APIVersion, want.Kind, "shop", worker); !ok || again != want || again.GVR().Resource == "" {
			t.Errorf("%s %s is %+v, want %+v", want.APIVersion, want.Kind, again, want)
		}
		if further := want.Resource != ""; ref.Is(StatefulSet) == further && ref.Kind == StatefulSet || ref.Of().Condemns == further && ref.Kind == StatefulSet {
			t.Errorf("%s counts as a StatefulSet of Kubernetes: %v", text, ref.Is(StatefulSet))
		}
	}
	if _, _, err := BuiltIn().Find(mapper, "rollouts"); err == nil {
		t.Error("a name without a group is taken")
	}
}
