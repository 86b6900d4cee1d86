package helm_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const labelled = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  template:
    metadata: {labels: {idalloc.dev/inject: "true"}}
    spec: {containers: [{name: main, image: example.com/main}]}
---
`

// OpenShift chooses a pod's user and refuses another one. Its admission acts before idalloc's, and again after it.
func TestAllPodsPassRestrictedV2(t *testing.T) {
	client := start(t)
	client.must(t, values{inject: values{on: true}}, "install", name, "CHART")
	kubectl(t, "--kubeconfig", client.command.Kubeconfig, "create", "-f", "testdata/restricted-v2.yaml")
	p := player{t: t, client: client}
	p.until(p.pod(t, labelled), func(pod *corev1.Pod, err error) bool { return err == nil && len(pod.Spec.InitContainers) == 1 })
	root := p.pod(t, labelled)
	root.Labels, root.Spec.Containers[0].SecurityContext = nil, &corev1.SecurityContext{RunAsUser: new(int64)}
	p.until(root, func(_ *corev1.Pod, err error) bool {
		return err != nil && strings.Contains(err.Error(), "restricted-v2")
	})

	for from, text := range everything(t, client) {
		found := false
		for _, o := range objects(t, []byte(text)) {
			pod := podOf(t, o)
			if pod == nil {
				continue
			}
			found = true
			asked := pod.Labels
			pod.Labels = without(asked)
			before, err := p.create(t.Context(), pod)
			if err != nil {
				t.Errorf("%s without idalloc's labels: %v", from, err)
				continue
			}
			before.Labels, before.ResourceVersion, before.UID, pod.Labels = asked, "", "", asked
			for when, pod := range map[string]*corev1.Pod{"before": before, "after": pod} {
				if _, err := p.create(t.Context(), pod); err != nil {
					t.Errorf("%s, with a user from %s idalloc's policies: %v", from, when, err)
				}
			}
		}
		if !found {
			t.Errorf("%s has no pod", from)
		}
	}
}

// everything returns the manifests of all pods that the project ships, by where they are from.
func everything(t *testing.T, client *cluster) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/controller.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"the chart": client.must(t, nil, "get", "manifest", name), "helm test": client.must(t, nil, "get", "hooks", name),
		"a pod with a sidecar": labelled, "an agent": strings.Replace(labelled, "{idalloc", "{idalloc.dev/assign: agent, idalloc", 1),
		"the controller's page": regexp.MustCompile("(?s)```yaml\n(apiVersion: apps/v1.*?)```").FindStringSubmatch(string(page))[1],
	}
	component := filepath.Join(t.TempDir(), "component")
	relative, err := filepath.Rel(component, mustAbs(t, "../../config/component"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"kustomization.yaml": "resources: [deployment.yaml]\ncomponents: [" + relative + "]\n", "deployment.yaml": strings.Replace(labelled, "idalloc.dev/inject", "app", 1)}
	if err := os.Mkdir(component, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(component, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uses, err := filepath.Glob("../../config/examples/uses/*.yaml")
	if err != nil || len(uses) < 8 {
		t.Fatalf("uses %v: %v", uses, err)
	}
	for _, file := range uses {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the project
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) != "argo-cd.yaml" { // a patch of Argo CD's own manifest
			all[file] = string(text)
		}
	}
	examples, err := filepath.Glob("../../config/examples/*/kustomization.yaml")
	if err != nil || len(examples) < 9 {
		t.Fatalf("examples %v: %v", examples, err)
	}
	fixed := []string{component, "../../config/controller", "../../examples/prometheus", "../../examples/postgres", "../../examples/rabbitmq", "../../autoscaler/config"}
	folders := make([]string, 0, len(fixed)+len(examples))
	folders = append(folders, fixed...)
	for _, file := range examples {
		folders = append(folders, filepath.Dir(file))
	}
	for _, folder := range folders {
		all[folder] = kubectl(t, "kustomize", folder)
	}
	return all
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...).CombinedOutput() //nolint:gosec // files of the project
	if err != nil {
		t.Fatalf("kubectl %v: %v: %s", args, err, out)
	}
	return string(out)
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}

// without returns the labels but idalloc's.
func without(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, "idalloc.dev/") })
	return labels
}

// podOf returns the pod that an object is or makes, as one of a ReplicaSet, or nil.
func podOf(t *testing.T, o object) *corev1.Pod {
	t.Helper()
	if o["kind"] != "Pod" {
		template, isTemplate := at(o, "spec", "template").(object)
		if !isTemplate {
			return nil
		}
		o = template
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(text, pod); err != nil {
		t.Fatal(err)
	}
	pod.Name, pod.Namespace, pod.GenerateName = "", "", "pod-"
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)}}
	return pod
}

// player creates pods in dry runs.
type player struct {
	t      *testing.T
	client kubernetes.Interface
}

func (p player) pod(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	for _, o := range objects(t, []byte(text)) {
		return podOf(t, o)
	}
	return nil
}

func (p player) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	for _, account := range []string{pod.Spec.ServiceAccountName, "default", name} {
		if account == "" {
			continue
		}
		_, err := p.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	return p.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// until creates a pod until the result is what it is when all policies are in force.
func (p player) until(pod *corev1.Pod, done func(*corev1.Pod, error) bool) {
	p.t.Helper()
	err := wait.PollUntilContextTimeout(p.t.Context(), 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) { return done(p.create(ctx, pod)), nil })
	if err != nil {
		result, refused := p.create(p.t.Context(), pod)
		p.t.Fatalf("the policies are not in force: %v, %v", refused, result.Spec)
	}
}
