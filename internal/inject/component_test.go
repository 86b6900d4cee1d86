package inject_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/internal/inject"
)

// What config/component gives a pod is what injection gives it, but for what its settings say.
func TestTheComponentHasTheSameSidecar(t *testing.T) {
	var component appsv1.Deployment
	var parts struct {
		Sidecar corev1.Container
		Volumes []corev1.Volume
	}
	read(t, "../../config/component/sidecar.yaml", &component)
	read(t, "sidecar.yaml", &parts)
	pod := component.Spec.Template.Spec
	if len(pod.InitContainers) != 1 {
		t.Fatalf("the component has %d init containers", len(pod.InitContainers))
	}
	sidecar := pod.InitContainers[0]
	parts.Sidecar.Image, parts.Sidecar.Args, parts.Sidecar.VolumeMounts[0].MountPath = sidecar.Image, []string{"watch"}, "/var/run/idalloc"
	if !reflect.DeepEqual(sidecar, parts.Sidecar) {
		t.Errorf("the component's sidecar is\n%+v\nand that of injection\n%+v", sidecar, parts.Sidecar)
	}
	if !reflect.DeepEqual(pod.Volumes, parts.Volumes) {
		t.Errorf("the component's volumes are\n%+v\nand those of injection\n%+v", pod.Volumes, parts.Volumes)
	}
}

// A token that lives for longer is of use for longer to a program that reads it, and one that is mounted by itself is in each container.
func TestTheManifestsMountNoTokenThatLivesForMoreThanAnHour(t *testing.T) {
	for _, path := range []string{
		"autoscaler/config/base/deployment.yaml", "config/component/sidecar.yaml", "config/examples/files/deployment.yaml", "config/examples/run/deployment.yaml",
		"examples/prometheus/deployment.yaml",
	} {
		var d appsv1.Deployment
		read(t, "../../"+path, &d)
		pod := d.Spec.Template.Spec
		if mounts := pod.AutomountServiceAccountToken; mounts == nil || *mounts {
			t.Errorf("%s does not set automountServiceAccountToken to false", path)
		}
		tokens := tokens(pod)
		if len(tokens) != 1 {
			t.Fatalf("%s mounts %d tokens", path, len(tokens))
		}
		if life := tokens[0].ExpirationSeconds; life == nil || *life > 3600 {
			t.Errorf("%s does not set expirationSeconds to 3600 or less", path)
		}
	}
}

// tokens returns those that the pod's volumes have.
func tokens(pod corev1.PodSpec) (found []*corev1.ServiceAccountTokenProjection) {
	for _, v := range pod.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ServiceAccountToken != nil {
				found = append(found, source.ServiceAccountToken)
			}
		}
	}
	return found
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// The component and "kubectl idalloc inject" make the same manifests, byte by byte once kustomize has written both.
func TestTheGatedComponentMakesWhatInjectMakes(t *testing.T) {
	const two = "containers: [{name: main, image: a, env: [{name: A, value: b}], volumeMounts: [{name: data, mountPath: /data}]}, {name: log, image: b}]"
	const first = "initContainers: [{name: setup, image: a}, {name: side, image: b, restartPolicy: Always, env: [{name: A, value: b}]}], "
	template := func(kind, pod string) string {
		return "apiVersion: " + kind + "\nmetadata: {name: w}\nspec: {template: {metadata: {labels: {app: w}}, spec: {" + pod + "}}}\n"
	}
	component, both := []string{"gated"}, []string{"gated", "gated/init"}
	const deployment, unlike = "apps/v1\nkind: Deployment", "apps/v1\nkind: DaemonSet"
	for _, tc := range []struct {
		name, manifests string
		components      []string
	}{
		{"a Deployment", template(deployment, two+", volumes: [{name: data, emptyDir: {}}]"), component},
		{"a Deployment with another gate", template(deployment, "schedulingGates: [{name: a/b}], "+two), component},
		{"a StatefulSet", template("apps/v1\nkind: StatefulSet", two), component},
		{"a Job", template("batch/v1\nkind: Job", two), component},
		{"init containers", template(deployment, first+two), both},
		{"several", template(deployment, first+two) + "---\n" + template("batch/v1\nkind: Job", first+two), both},
		{"what has it", template(deployment, "containers: [{name: main, env: [{name: IDALLOC_ID, "+
			"valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['idalloc.dev/id']\"}}}, {name: X, value: $(IDALLOC_ID)}]}]"), component},
		{"what has its count", template(deployment, "containers: [{name: main, env: [{name: IDALLOC_COUNT, "+
			"valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['idalloc.dev/start-count']\"}}}, {name: X, value: $(IDALLOC_COUNT)}]}]"), component},
	} {
		injected, _, err := inject.Stream(tc.manifests, inject.Options{All: true, By: inject.ByController})
		if err != nil {
			t.Fatal(tc.name, err)
		}
		want, got := kustomize(t, injected), kustomize(t, tc.manifests, tc.components...)
		if got != want || !strings.Contains(got, "idalloc.dev/id") {
			t.Errorf("%s: the component makes\n%s\nand inject\n%s", tc.name, got, want)
		}
	}
	const restarts = "metadata: {labels: {app: w}, annotations: {idalloc.dev/on-count-change: restart}}"
	for _, kind := range []string{deployment, "apps/v1\nkind: StatefulSet", "batch/v1\nkind: Job"} {
		manifests := template(kind, first+two+", volumes: [{name: data, emptyDir: {}}]")
		injected, _, err := inject.Stream(strings.ReplaceAll(manifests, "metadata: {labels: {app: w}}", restarts), inject.Options{All: true, By: inject.ByController})
		if err != nil {
			t.Fatal(err)
		}
		want, got := kustomize(t, injected), kustomize(t, manifests, "gated", "gated/restart", "gated/init")
		if got != want || !strings.Contains(got, "RestartAllContainers") {
			t.Errorf("%s: the component that restarts makes\n%s\nand inject\n%s", kind, got, want)
		}
	}
	const numbered = "metadata: {labels: {app: w}, annotations: {idalloc.dev/first-number: '1024'}}"
	for _, kind := range []string{deployment, "apps/v1\nkind: StatefulSet", "batch/v1\nkind: Job"} {
		manifests := strings.ReplaceAll(template(kind, two), "metadata: {labels: {app: w}}", numbered)
		injected, _, err := inject.Stream(manifests, inject.Options{All: true, By: inject.ByController})
		if err != nil {
			t.Fatal(err)
		}
		want, got := kustomize(t, injected), kustomize(t, manifests, "gated", "gated/number")
		if got != want || strings.Count(got, "idalloc.dev/number") != 3 {
			t.Errorf("%s: the component of machine numbers makes\n%s\nand inject\n%s", kind, got, want)
		}
	}
	if got := kustomize(t, template(unlike, two), component...); strings.Contains(got, "idalloc") {
		t.Errorf("a DaemonSet becomes\n%s", got)
	}
}

// kustomize returns the manifests of a kustomization with components of config.
func kustomize(t *testing.T, manifests string, components ...string) string {
	t.Helper()
	dir, paths := t.TempDir(), make([]string, 0, len(components))
	for _, c := range components {
		path, err := filepath.Abs("../../config/" + c)
		if err != nil {
			t.Fatal(err)
		}
		if path, err = filepath.Rel(dir, path); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	kustomization := "resources: [manifests.yaml]\ncomponents: [" + strings.Join(paths, ", ") + "]\n"
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "manifests.yaml"), []byte(manifests), 0o600),
		os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "kubectl", "kustomize", dir).CombinedOutput() //nolint:gosec // a directory of the test
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
