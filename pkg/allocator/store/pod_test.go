package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
)

// book is an API server with this many pods.
type book struct {
	pods int
	// forget makes it forget, once, the moment that the first page was of.
	forget bool
	asked  []string
}

// ServeHTTP implements http.Handler.
func (b *book) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	b.asked = append(b.asked, "limit="+q.Get("limit")+" continue="+q.Get("continue")+" resourceVersion="+q.Get("resourceVersion"))
	w.Header().Set("Content-Type", jsonType)
	from, err := strconv.Atoi(q.Get("continue"))
	if err == nil && b.forget {
		b.forget = false
		w.WriteHeader(http.StatusGone)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
		return
	}
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil {
		limit = b.pods
	}
	for i := from; i < min(from+limit, b.pods); i++ {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%04d", i)},
		})
	}
	if from+limit < b.pods {
		list.Continue = strconv.Itoa(from + limit)
	}
	if err := json.NewEncoder(w).Encode(list); err != nil {
		panic(err)
	}
}

func TestEachPodShowsAllPages(t *testing.T) {
	for name, tc := range map[string]struct {
		pods   int
		forget bool
		want   []string
	}{
		"none":         {pods: 0, want: []string{"limit=500 continue= resourceVersion="}},
		"one page":     {pods: 500, want: []string{"limit=500 continue= resourceVersion="}},
		"three pages":  {pods: 1001, want: []string{"limit=500 continue= resourceVersion=", "limit=500 continue=500 resourceVersion=", "limit=500 continue=1000 resourceVersion="}},
		"a lost token": {pods: 1001, forget: true, want: []string{"limit=500 continue= resourceVersion=", "limit=500 continue=500 resourceVersion=", "limit= continue= resourceVersion="}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &book{pods: tc.pods, forget: tc.forget}
			server := httptest.NewServer(b)
			defer server.Close()
			s, err := New(&rest.Config{Host: server.URL}, testclock.NewFakeClock(testTime))
			if err != nil {
				t.Fatal(err)
			}
			shown := map[string]bool{}
			if err := s.EachPod(t.Context(), "shop", metav1.ListOptions{}, func(p *metav1.PartialObjectMetadata) { shown[p.Name] = true }); err != nil {
				t.Fatal(err)
			}
			if len(shown) != tc.pods {
				t.Errorf("shown are %d of %d pods: %v", len(shown), tc.pods, slices.Sorted(maps.Keys(shown)))
			}
			if !slices.Equal(b.asked, tc.want) {
				t.Errorf("asked %q, want %q", b.asked, tc.want)
			}
			whole, b2 := map[string]bool{}, &book{pods: tc.pods, forget: tc.forget}
			server.Config.Handler = b2
			if err := s.EachFullPod(t.Context(), "shop", metav1.ListOptions{}, func(p *unstructured.Unstructured) { whole[p.GetName()] = true }); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(whole, shown) || !slices.Equal(b2.asked, tc.want) {
				t.Errorf("whole, %d pods are shown, asked %q, want %q", len(whole), b2.asked, tc.want)
			}
		})
	}
}
