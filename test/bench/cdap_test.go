package main

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

func TestCDAPTakesTheLowestFreeIDOfItsRange(t *testing.T) {
	for name, c := range map[string]struct {
		held     string
		id       int
		after    map[string]string
		failed   bool
		podLists int
	}{
		"the first":                       {"", 0, map[string]string{"0": "new"}, false, 0},
		"a gap":                           {`{"0":"a","2":"b"}`, 1, map[string]string{"0": "a", "1": "new", "2": "b"}, false, 0},
		"its own":                         {`{"0":"a","1":"new"}`, 1, map[string]string{"0": "a", "1": "new"}, false, 0},
		"a stale one is left with room":   {`{"0":"gone"}`, 1, map[string]string{"0": "gone", "1": "new"}, false, 0},
		"stale ones go where it is full":  {`{"0":"a","1":"gone","2":"b"}`, 1, map[string]string{"0": "a", "1": "new", "2": "b"}, false, 1},
		"no id above the range is taken":  {`{"0":"a","1":"b","2":"c"}`, 0, map[string]string{"0": "a", "1": "b", "2": "c"}, true, 1},
		"an entry above it is no own one": {`{"0":"a","7":"new"}`, 1, map[string]string{"0": "a", "1": "new", "7": "new"}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := suite.Deployment("worker", 3, suite.PodSpec(suite.Container("main", "/bin/true")))
			d.Namespace, d.Annotations = "ns", map[string]string{cdapKey: c.held}
			pods := []string{"a", "b", "c", "new"}
			objects := append(make([]runtime.Object, 0, 1+len(pods)), d)
			for _, pod := range pods {
				objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: "ns", Labels: d.Spec.Selector.MatchLabels}})
			}
			client := fake.NewClientset(objects...)
			id, err := cdapClaim(t.Context(), client, "ns", "worker", "new")
			if id != c.id || (err != nil) != c.failed {
				t.Errorf("got %d, want %d: %v", id, c.id, err)
			}
			now, err := client.AppsV1().Deployments("ns").Get(t.Context(), "worker", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			held, err := cdapHeld(now)
			if err != nil || !maps.Equal(held, c.after) {
				t.Errorf("the map is %v, want %v: %v", held, c.after, err)
			}
			lists := 0
			for _, a := range client.Actions() {
				if a.Matches("list", "pods") {
					lists++
				}
			}
			if lists != c.podLists {
				t.Errorf("listed pods %d times, want %d", lists, c.podLists)
			}
		})
	}
}

func TestCDAPReadsAgainAfterAConflict(t *testing.T) {
	d := suite.Deployment("worker", 3, suite.PodSpec(suite.Container("main", "/bin/true")))
	d.Namespace = "ns"
	client := fake.NewClientset(d)
	first := true
	client.PrependReactor("update", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		if !first {
			return false, nil, nil
		}
		first = false
		d.Annotations = map[string]string{cdapKey: `{"0":"a"}`} // another pod was faster
		err := client.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("deployments"), d, "ns")
		if err == nil {
			err = apierrors.NewConflict(appsv1.Resource("deployments"), "worker", nil)
		}
		return true, nil, err
	})
	if id, err := cdapClaim(t.Context(), client, "ns", "worker", "new"); id != 1 || err != nil {
		t.Errorf("got %d, want 1: %v", id, err)
	}
}
