package store

import "testing"

func TestParseRef(t *testing.T) {
	for text, want := range map[string]Ref{
		"deployment/worker": {testAPIVersion, Deployment, "shop", testName, ""}, "deploy/worker": {testAPIVersion, Deployment, "shop", testName, ""},
		"Deployments.apps/worker": {testAPIVersion, Deployment, "shop", testName, ""}, "deployments.v1.apps/worker": {testAPIVersion, Deployment, "shop", testName, ""},
		"sts/worker": {testAPIVersion, StatefulSet, "shop", testName, ""}, "rs/worker": {testAPIVersion, ReplicaSet, "shop", testName, ""},
		"job/worker": {"batch/v1", Job, "shop", testName, ""}, "jobs.batch/worker": {"batch/v1", Job, "shop", testName, ""},
	} {
		if got, err := ParseRef(text, "shop"); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "worker", "deployment", "deployment/", "/worker", "deployment/worker/x", "deployments.batch/worker", "pod/worker", "daemonset/worker"} {
		if got, err := ParseRef(text, "shop"); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestNewRef(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind string
		ok               bool
	}{
		"a Deployment":    {testAPIVersion, Deployment, true},
		"a Job":           {"batch/v1", Job, true},
		"another version": {"apps/v2", Deployment, false},
		"another group":   {"example.com/v1", Deployment, false},
		"another kind":    {testAPIVersion, "DaemonSet", false},
		"a kind of none":  {"/v1", "Node", false},
	} {
		ref, ok := NewRef(tc.apiVersion, tc.kind, "shop", testName)
		if want := (Ref{tc.apiVersion, tc.kind, "shop", testName, ""}); ok != tc.ok || (ok && ref != want) {
			t.Errorf("%s: %+v, %t", name, ref, ok)
		}
	}
}

// refOf returns the Ref of a workload of one of the four kinds.
func refOf(t *testing.T, kind string) Ref {
	t.Helper()
	ref, err := ParseRef(kind+"/"+testName, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
