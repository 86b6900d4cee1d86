package reconciler

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
