package inject_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/internal/inject"
)

// completed returns what Pod makes of a pod, and checks that it makes the same of the result.
func completed(t *testing.T, pod string) (*corev1.Pod, string) {
	t.Helper()
	text, err := inject.Pod([]byte(pod), "example.com/idalloc:v1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := inject.Pod(text, "")
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("Pod is not idempotent: %v\n%s\n%s", err, text, again)
	}
	var p corev1.Pod
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return &p, string(text)
}

func TestAPodThatAsksForNothingKeepsItsBytes(t *testing.T) {
	for _, labels := range []string{`{}`, `{"idalloc.dev/assign":"agent"}`, `{"idalloc.dev/assign":"perhaps"}`, `{"idalloc.dev/inject":"false"}`} {
		pod := `{"spec": {"containers":[{"name":"main", "image":"x"}]}, "metadata": {"labels":` + labels + `}}`
		if _, text := completed(t, pod); text != pod {
			t.Errorf("labels %s: %s", labels, text)
		}
	}
}

func TestAPodGetsWhatItAsksFor(t *testing.T) {
	const mounted = `"volumes":[{"name":"kube-api-access-abcde"}],"serviceAccountName":"default","containers":[{"name":"main","image":"x","volumeMounts":[{"name":"kube-api-access-abcde"}]}]`
	pod, text := completed(t, `{"metadata":{"labels":{"idalloc.dev/assign":"controller"},"annotations":{"a":"\u007f\u2028\ud83d\ude00 0x1F"}},"spec":{`+mounted+`}}`)
	if len(pod.Spec.SchedulingGates) != 1 || pod.Spec.Containers[0].Env[0].Name != "IDALLOC_ID" || len(pod.Spec.Containers[0].VolumeMounts) != 2 {
		t.Errorf("the pod has no gate, no id, or has lost its token: %s", text)
	}
	if pod.Annotations["a"] != "\u007f\u2028\U0001F600 0x1F" {
		t.Errorf("a text changed: %q", pod.Annotations["a"])
	}
	pod, text = completed(t, `{"metadata":{"labels":{"idalloc.dev/inject":"true"}},"spec":{`+mounted+`}}`)
	if len(pod.Spec.InitContainers) != 1 || pod.Spec.InitContainers[0].Image != "example.com/idalloc:v1" || pod.Spec.ServiceAccountName != "idalloc" {
		t.Errorf("the pod has no sidecar: %s", text)
	}
	if strings.Contains(text, "kube-api-access-") {
		t.Errorf("the program has a token of the sidecar's account: %s", text)
	}
}

func TestAMountOfTheFilesElsewhereStays(t *testing.T) {
	for _, label := range []string{`"idalloc.dev/assign":"controller"`, `"idalloc.dev/inject":"true"`} {
		pod, _ := completed(t, `{"metadata":{"labels":{`+label+`}},"spec":{"containers":[{"name":"main","image":"x","volumeMounts":[{"name":"idalloc","mountPath":"/ids"}]}]}}`)
		paths := make([]string, 0, 2)
		for _, m := range pod.Spec.Containers[0].VolumeMounts {
			paths = append(paths, m.MountPath)
		}
		if want := []string{"/ids", "/var/run/idalloc"}; !slices.Equal(paths, want) {
			t.Errorf("%s: mounts %v, not %v", label, paths, want)
		}
	}
}

func TestAPodThatCannotHaveItIsRefused(t *testing.T) {
	_, err := inject.Pod([]byte(`{"metadata":{"labels":{"idalloc.dev/assign":"controller"}},"spec":{"containers":[{"name":"main","image":"x","env":[{"name":"IDALLOC_ID","value":"1"}]}]}}`), "")
	if err == nil || !strings.Contains(err.Error(), "container main sets IDALLOC_ID itself: remove it there") {
		t.Errorf("Pod: %v", err)
	}
	if _, err = inject.Pod([]byte(`{`), ""); err == nil {
		t.Error("Pod accepts what is no JSON")
	}
}
