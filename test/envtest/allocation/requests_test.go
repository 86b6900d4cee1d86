package allocation

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	idcontext "github.com/idalloc/idalloc/pkg/context"
)

// intercept lets do answer the requests of a client. next is the way to the server.
func intercept(do func(next http.RoundTripper, r *http.Request) (*http.Response, error)) change {
	return func(o *idcontext.Options) {
		o.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) { return do(next, r) })
		})
	}
}

// roundTrip is a http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// counting counts the requests of a client.
func counting(n *atomic.Int64) change {
	return intercept(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		n.Add(1)
		return next.RoundTrip(r)
	})
}

// trap does something in the middle of a client's requests: before the first one that before picks, once one that
// after picks was answered.
type trap struct {
	after, before func(*http.Request) bool
	do            func()

	armed atomic.Bool
	once  sync.Once
}

func (t *trap) options(o *idcontext.Options) {
	intercept(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if t.armed.Load() && t.before(r) {
			t.once.Do(t.do)
		}
		resp, err := next.RoundTrip(r)
		if err == nil && t.after(r) {
			t.armed.Store(true)
		}
		return resp, err
	})(o)
}

// request picks those with a method whose path ends so.
func request(method, path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method && strings.HasSuffix(r.URL.Path, path) }
}

// The requests of a claim, by the pod that claims.
func reads(string) func(*http.Request) bool { return request(http.MethodGet, "/deployments/worker") }
func lists(string) func(*http.Request) bool { return listsPods }
func writesOwner(string) func(*http.Request) bool {
	return request(http.MethodPatch, "/deployments/worker")
}
func writesReceipt(pod string) func(*http.Request) bool {
	return request(http.MethodPatch, "/pods/"+pod)
}

// listsPods picks the lists that a planner makes.
func listsPods(r *http.Request) bool {
	q := r.URL.Query()
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods") && q.Get("watch") == "" && q.Get("labelSelector") != ""
}
