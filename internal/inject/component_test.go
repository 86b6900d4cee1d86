package inject_test

import (
	"os"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
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
