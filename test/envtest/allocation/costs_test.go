package allocation

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// bill counts what instances ask of the API server and get an answer to.
type bill struct {
	mu sync.Mutex
	// requests by "VERB resource", as kubectl calls them.
	requests map[string]int
	// bytes of the answers' bodies, watch events among them.
	bytes int
	// open are the requests that were not answered yet.
	open int
}

func (b *bill) options(o *idalloc.Options) { intercept(b.charge)(o) }

func (b *bill) charge(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	b.opened(1)
	defer b.opened(-1)
	resp, err := next.RoundTrip(r)
	if err != nil || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
		return resp, err // of a server that is busy: the request comes again
	}
	resp.Body = billedBody{resp.Body, b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests[verb(r)]++
	return resp, nil
}

// opened counts requests that begin, and with -1 that end.
func (b *bill) opened(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open += n
}

type billedBody struct {
	io.ReadCloser
	bill *bill
}

func (b billedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bill.mu.Lock()
	b.bill.bytes += n
	b.bill.mu.Unlock()
	return n, err
}

// verb returns "LIST pods" and the like.
func verb(r *http.Request) string {
	_, rest, _ := strings.Cut(r.URL.Path, "/namespaces/")
	parts := strings.Split(rest, "/") // namespace, resource, name
	method := r.Method
	switch {
	case method != http.MethodGet:
	case r.URL.Query().Get("watch") != "":
		method = "WATCH"
	case len(parts) == 2:
		method = "LIST"
	}
	return method + " " + parts[min(1, len(parts)-1)]
}

// asked returns what was counted so far.
func (b *bill) asked() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.requests)
}

// calm returns what would have been counted if the server had never been slow: then a planner waits longer, and reads the owner once more.
func calm(asked, want map[string]int) map[string]int {
	const read = "GET deployments"
	if asked[read] == want[read]+1 && want["PATCH deployments"] > 0 {
		asked[read]--
	}
	return asked
}

var _ = Describe("what it costs without partitions", func() {
	It("to claim a slot, and to take one that a sibling's plan gave, and to hold both", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		names := podNames(w.idle(ctx, 2))
		instances, bills := make([]func() identity.Identity, 0, len(names)), make([]*bill, 0, len(names))
		for _, pod := range names {
			b := &bill{requests: map[string]int{}}
			current := w.instance(ctx, pod, b.options).Current
			Eventually(func() bool { return current().Assigned() }).WithContext(ctx).Should(BeTrue())
			instances, bills = append(instances, current), append(bills, b)
		}
		for n, want := range []map[string]int{
			{ // it resolves its owner, reads it again to see how busy the server is, plans for both with two lists, and takes with the third (T3)
				"GET pods": 1, "GET replicasets": 1, "GET deployments": 2, "LIST pods": 3, "PATCH deployments": 1, "PATCH pods": 1,
				"WATCH deployments": 1, "WATCH pods": 1,
			},
			{ // the map names it already
				"GET pods": 1, "GET replicasets": 1, "GET deployments": 1, "LIST pods": 1, "PATCH pods": 1, "WATCH deployments": 1, "WATCH pods": 1,
			},
		} {
			Eventually(func() string { return fmt.Sprint(calm(bills[n].asked(), want)) }).WithContext(ctx).Should(Equal(fmt.Sprint(want)), "pod %d", n)
		}
		before := []map[string]int{bills[0].asked(), bills[1].asked()}
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		for n, current := range instances {
			Eventually(func() int { return current().Count }).WithContext(ctx).Should(Equal(3))
			Expect(bills[n].asked()).To(Equal(before[n]), "a holder hears what it needs by its watches")
		}
	})
})

// intercept lets do answer the requests of a client. next is the way to the server.
func intercept(do func(next http.RoundTripper, r *http.Request) (*http.Response, error)) change {
	return func(o *idalloc.Options) {
		o.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) { return do(next, r) })
		})
	}
}

// roundTrip is a http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
