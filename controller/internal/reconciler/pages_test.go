package reconciler

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// answersOf answers requests.
type answersOf func(*http.Request) string

func (f answersOf) RoundTrip(r *http.Request) (*http.Response, error) {
	body, code := f(r), http.StatusOK
	if strings.Contains(body, `"Status"`) {
		code = http.StatusGone
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// The pages of a list expire, and a pod goes before the list begins again.
func TestAListThatBeginsAgainIsOneList(t *testing.T) {
	n := 0
	s, err := store.New(&rest.Config{Host: "http://api.invalid", QPS: -1, Transport: answersOf(func(*http.Request) string {
		n++
		switch n {
		case 1:
			return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"x"},"items":[{"metadata":{"name":"gone","namespace":"n","uid":"u"}}]}`
		case 2:
			return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`
		}
		return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"here","namespace":"n","uid":"v"}}]}`
	})}, newCluster(t).clk)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []client.ObjectList{&corev1.PodList{}, metaList(replicaSets)} {
		n = 0
		if err := (pages{store: s}).List(t.Context(), list, client.InNamespace("n")); err != nil || meta.LenList(list) != 1 {
			t.Errorf("%d objects of a list that has one (%v)", meta.LenList(list), err)
		}
	}
}

// A decision must not depend on where its pods come from.
func TestAListShowsOfAPodWhatTheCacheShows(t *testing.T) {
	var pod corev1.Pod
	pod.Kind, pod.APIVersion = "Pod", "v1"
	pod.Name, pod.Namespace, pod.UID = "a", "n", "u"
	pod.Labels = map[string]string{receipt.AssignLabel: receipt.ByController, kinds.RevisionLabel: "5d9"}
	pod.Annotations = map[string]string{receipt.StartCountKey: "3", receipt.TurnKey: "2 f00 ba5", assignment.OnCountKey: assignment.OnCountRestart}
	pod.Spec.NodeName, pod.Spec.SchedulingGates = "node", []corev1.PodSchedulingGate{{Name: receipt.Gate}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
		{Path: "p", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + receipt.StartCountKey + "']"}},
	}}}}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: assignment.CountWatcher, ContainerID: "containerd://70fba7807c1c"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "worker", ContainerID: "containerd://c1c4711"}}
	item, err := json.Marshal(&pod)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.New(&rest.Config{Host: "http://api.invalid", QPS: -1, Transport: answersOf(func(*http.Request) string {
		return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + string(item) + `]}`
	})}, newCluster(t).clk)
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.PodList
	if err := (pages{store: s}).List(t.Context(), &list, client.InNamespace("n")); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d pods, %v", len(list.Items), err)
	}
	if _, err := trimPod(&pod); err != nil {
		t.Fatal(err)
	}
	listed, cached := passOf(t, nil).podOf(&list.Items[0]), passOf(t, nil).podOf(&pod)
	if !reflect.DeepEqual(listed, cached) || cached.Program != "c1c4711" {
		t.Errorf("the list shows %+v, and the cache %+v", listed, cached)
	}
}

func TestAPodThatItsSuccessorWouldBeIsNoOlderOne(t *testing.T) {
	p := passOf(t, nil)
	p.owner.Ref, _ = kinds.NewRef("apps/v1", kinds.StatefulSet, "shop", worker)
	p.owner.Template, p.owner.Partition = "new", 2
	for _, tc := range []struct {
		index, hash string
		older       bool
	}{
		{"1", "old", false}, // below the partition, it would be made from the old template again
		{"2", "old", true}, {"2", "new", false}, {"1", "new", false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Labels: map[string]string{kinds.PodIndexLabel: tc.index, kinds.RevisionLabel: tc.hash}}}
		if q := p.podOf(pod); q.Older != tc.older {
			t.Errorf("ordinal %s of template %s: older is %v", tc.index, tc.hash, q.Older)
		}
	}
	if p.owner.Template = ""; p.podOf(&corev1.Pod{}).Older {
		t.Error("a pod of another kind is older")
	}
}
