package enable

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// own has of everything one that is not idalloc's.
const own = `apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: shop}
spec:
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      schedulingGates: [{name: example.com/quota}]
      volumes: [{name: data, emptyDir: {}}]
      initContainers: [{name: first, image: first}]
      containers:
      - {name: main, image: main, env: [{name: A, value: b}], volumeMounts: [{name: data, mountPath: /data}]}
`

func TestReleaseIsTheInverseOfInject(t *testing.T) {
	ref := kinds.Ref{APIVersion: "apps/v1", Kind: kinds.Deployment, Namespace: "shop", Name: "worker"}
	injected, workloads, err := inject.Stream(own, inject.Options{All: true, By: inject.ByController})
	if err != nil || len(workloads) != 1 {
		t.Fatal(workloads, err)
	}
	before, after, again := objectOf(t, injected), objectOf(t, own), objectOf(t, own)
	p, err := Release(ref, &before)
	if err != nil || len(p.Objects) != 1 || !reflect.DeepEqual(p.Objects[0].Object, after.Object) {
		text, _ := yaml.Marshal(p.Objects)
		t.Fatalf("%v: of\n%s\nit leaves\n%s", err, injected, text)
	}
	const command = "kubectl delete pods -n shop -l 'app=worker,idalloc.dev/assign=controller' --field-selector=status.phase=Pending"
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, command) || strings.Contains(notes, "rolebindings") {
		t.Errorf("it says %s", notes)
	}
	if p, err := Release(ref, &again); err != nil || p.Objects != nil || !strings.Contains(strings.Join(p.Notes, ""), "asks for no id") {
		t.Errorf("of a workload that asks for none: %v, %v", p, err)
	}
}

func TestReleaseOfOtherWays(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, template string
		fails, says    string
	}{
		"a sidecar by label": {
			"sts", `metadata: {labels: {idalloc.dev/inject: "true"}, annotations: {inject.idalloc.dev/service-account: worker-statefulset-idalloc}}`, "",
			"kubectl delete roles,rolebindings,serviceaccounts -n shop --ignore-not-found worker-statefulset-idalloc worker-statefulset-idalloc-agent",
		},
		"an agent with an account of its own": {
			deploy, `metadata: {labels: {idalloc.dev/inject: "true", idalloc.dev/assign: agent}}, spec: {serviceAccountName: shop}`, "",
			"kubectl delete roles,rolebindings -n shop --ignore-not-found worker-idalloc worker-idalloc-agent",
		},
		"a Job":                     {"job", "metadata: {labels: {idalloc.dev/assign: controller}}", "cannot be changed: delete the Job", ""},
		"the sidecar by a manifest": {deploy, "metadata: {labels: {idalloc.dev/assign: agent}}, spec: {initContainers: [{name: idalloc}]}", "take it out of your manifest", ""},
	} {
		ref, whole := worker(t, tc.kind, tc.template)
		p, err := Release(ref, whole)
		if tc.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fails) || p.Objects != nil {
				t.Errorf("%s: %v, %v", name, p, err)
			}
			continue
		}
		if notes := strings.Join(p.Notes, "\n"); err != nil || len(p.Objects) != 1 || !strings.Contains(notes, tc.says) || strings.Contains(notes, "at the gate") {
			t.Errorf("%s: %v: %s", name, err, notes)
		}
	}
	if p, err := Release(kinds.Ref{Kind: kinds.Deployment, Name: "worker"}, &unstructured.Unstructured{Object: map[string]any{}}); err == nil || p.Objects != nil {
		t.Errorf("without a template: %v, %v", p, err)
	}
}
