package store

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/store/page"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// book is an API server with this many pods.
type book struct {
	pods int
	// forget makes it forget, once, the moment that the first page was of, and forgets each time.
	forget, forgets bool
	// bytes is how long an annotation of each pod is, without the first small pods. wrote is called after each pod.
	bytes int
	small int
	wrote func()
	asked []string
}

// store returns a Store of this server.
func (b *book) store(tb testing.TB) *Store {
	tb.Helper()
	server := httptest.NewServer(b)
	tb.Cleanup(server.Close)
	s, err := New(&rest.Config{Host: server.URL, QPS: -1}, testclock.NewFakeClock(testTime))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// ServeHTTP implements http.Handler.
func (b *book) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	b.asked = append(b.asked, "limit="+q.Get("limit")+" continue="+q.Get("continue")+" resourceVersion="+q.Get("resourceVersion"))
	w.Header().Set("Content-Type", jsonType)
	from, err := strconv.Atoi(q.Get("continue"))
	if err == nil && (b.forget || b.forgets) {
		b.forget = false
		w.WriteHeader(http.StatusGone)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
		return
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil {
		limit = b.pods
	}
	next := ""
	if from+limit < b.pods {
		next = strconv.Itoa(from + limit)
	}
	_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":%q},"items":[`, next)
	for i := from; i < min(from+limit, b.pods); i++ {
		bytes := b.bytes
		if i < b.small {
			bytes = 0
		}
		_, err := fmt.Fprintf(w, `%s{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"worker-%04d","annotations":{"a":"%s"}}}`,
			strings.Repeat(",", min(i-from, 1)), i, strings.Repeat("x", bytes))
		if err != nil {
			return // the client reads no more
		}
		if b.wrote != nil {
			b.wrote()
		}
	}
	_, _ = fmt.Fprint(w, "]}")
}

func TestEachPodShowsAllPages(t *testing.T) {
	const large = page.Bytes / 250 // so that two hundred and fifty pods are more than a page
	ask := func(pages ...string) (all []string) {
		for _, p := range pages {
			limit, next, _ := strings.Cut(p, "@")
			all = append(all, "limit="+limit+" continue="+next+" resourceVersion=")
		}
		return all
	}
	for name, tc := range map[string]struct {
		book book
		want []string
	}{
		"none":         {book{pods: 0}, ask("500")},
		"one page":     {book{pods: 500}, ask("500")},
		"three pages":  {book{pods: 1001}, ask("500", "500@500", "500@1000")},
		"a lost token": {book{pods: 1001, forget: true}, ask("500", "500@500", "@")},
		"large pods":   {book{pods: 251, bytes: large}, ask("500", "125", "125@125", "125@250")},
		"large pods at the end": {
			book{pods: 751, bytes: large, small: 500},
			ask("500", "500@500", "125", "125@125", "125@250", "125@375", "125@500", "125@625", "125@750"),
		},
		"large pods, and a lost token": {
			book{pods: 251, bytes: large, forget: true}, ask("500", "125", "125@125", "@", "500", "125", "125@125", "125@250"),
		},
		"pods that are larger than a page": {book{pods: 2, bytes: page.Bytes}, ask("500", "125", "31", "7", "1", "1@1")},
	} {
		t.Run(name, func(t *testing.T) {
			b := tc.book
			s := b.store(t)
			shown, whole := map[string]bool{}, map[string]bool{}
			if err := s.EachPod(t.Context(), "shop", metav1.ListOptions{}, func(p *metav1.PartialObjectMetadata) { shown[p.Name] = true }); err != nil {
				t.Fatal(err)
			}
			if len(shown) != b.pods || !slices.Equal(b.asked, tc.want) {
				t.Errorf("shown are %d of %d pods, asked %q, want %q", len(shown), b.pods, b.asked, tc.want)
			}
			b = tc.book
			if err := s.EachFullPod(t.Context(), "shop", metav1.ListOptions{}, func() { clear(whole) }, func(p *unstructured.Unstructured) { whole[p.GetName()] = true }); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(whole, shown) || !slices.Equal(b.asked, tc.want) {
				t.Errorf("whole, %d pods are shown, asked %q, want %q", len(whole), b.asked, tc.want)
			}
			b = tc.book
			if receipts, _, err := s.Receipts(t.Context(), theRef(), Sought{IDs: []int{0}}); err != nil || len(receipts) != b.pods || b.asked[0] != ask("@")[0] {
				t.Errorf("%d of %d receipts, %v, asked %q", len(receipts), b.pods, err, b.asked)
			}
		})
	}
}

// A server may forget each moment before the last page.
func TestAListThatIsLargeAndSlowEnds(t *testing.T) {
	b := &book{pods: 60, bytes: 256 << 10, forgets: true}
	s := b.store(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.wrote = func() {
		if len(b.asked) > 20 {
			cancel()
		}
	}
	if _, _, err := s.Receipts(ctx, theRef(), Sought{IDs: []int{0}}); err != nil {
		t.Errorf("after %d requests: %v", len(b.asked), err)
	}
}

// A Lease is as large as an account may make it, and there is one for each slot.
func TestLargeLeasesComeInPages(t *testing.T) {
	b := &book{pods: 251, bytes: page.Bytes / 250}
	s := b.store(t)
	shown, again := 0, 0
	o := metav1.ListOptions{}
	if err := s.eachObject(t.Context(), request.Target{GVR: slotlease.Resource, Namespace: "shop"}, o, 0, func() { again++; shown = 0 }, func(*unstructured.Unstructured) { shown++ }); err != nil {
		t.Fatal(err)
	}
	if shown != b.pods || again == 0 || len(b.asked) != 5 {
		t.Errorf("%d of %d Leases, again %d times, asked %q", shown, b.pods, again, b.asked)
	}
}
