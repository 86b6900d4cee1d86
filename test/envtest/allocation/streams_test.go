package allocation

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// streams are the watches of pods that a client has open.
type streams struct {
	mu sync.Mutex
	// open are their selectors.
	open map[*http.Request]string
}

func (s *streams) follow(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || verb(r) != "WATCH pods" {
		return resp, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	selector, _, _ := strings.Cut(r.URL.Query().Get("labelSelector")+r.URL.Query().Get("fieldSelector"), ",")
	s.open[r] = selector
	resp.Body = streamBody{resp.Body, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, r)
	}}
	return resp, nil
}

// selectors returns those of the watches that are open, in ascending order.
func (s *streams) selectors() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Values(s.open))
}

type streamBody struct {
	io.ReadCloser

	closed func()
}

func (b streamBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}

var _ = Describe("A holder of partitions", func() {
	It("follows its own pod and that of the id before its own, and no other of five", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		names := podNames(w.idle(ctx, 5))
		w.divide(ctx, 10)
		follows, pods := map[string]*streams{}, make([]*parts, 0, len(names))
		for _, name := range names {
			follows[name] = &streams{open: map[*http.Request]string{}}
			pods = append(pods, w.works(ctx, name, intercept(follows[name].follow)))
		}
		divided(ctx, 10, pods...)
		slots := w.assignment(ctx)
		for id, name := range slots {
			before := slots[(id+len(names)-1)%len(names)]
			Eventually(follows[name].selectors).WithContext(ctx).Should(ConsistOf("metadata.name="+name, "metadata.name="+before), "id %d", id)
		}
	})
})
