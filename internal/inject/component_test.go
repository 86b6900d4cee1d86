package inject_test

import (
	"os"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// What config/component gives a pod is what injection gives it, but for what its settings say.
func TestTheComponentHasTheSameSidecar(t *testing.T) {
	var component struct {
		Spec struct {
			Template struct {
				Spec corev1.PodSpec
			}
		}
	}
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
