package apifake

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

const (
	// Namespace is where all objects are.
	Namespace = server.Namespace
	// Editor is the field manager of what a test changes.
	Editor = "kubectl-edit"
)

// Server is a server.Standalone at a URL. It is safe for concurrent use.
type Server struct {
	api   *server.Standalone
	proxy *httputil.ReverseProxy
	http  *httptest.Server
	end   context.CancelFunc // of the watches
	away  atomic.Bool

	mu       sync.Mutex
	news     chan struct{} // closed and replaced at every write
	requests []string
	// before may answer a request itself.
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
}

// New starts a server that ends with the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := Start()
	tb.Cleanup(s.Close)
	return s
}

// Start starts a server that ends with Close.
func Start() *Server {
	s := &Server{api: server.NewStandalone(), news: make(chan struct{})}
	s.proxy = &httputil.ReverseProxy{Transport: s.api, Rewrite: func(*httputil.ProxyRequest) {}}
	s.http = httptest.NewUnstartedServer(s)
	ctx, end := context.WithCancel(context.Background())
	s.http.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.end = end
	s.http.Start()
	return s
}

// CountFrom has later writes get resourceVersions after this one. Call it before there are watches.
func (s *Server) CountFrom(rv int64) { s.api.Alone(func(is *server.Server) { is.CountFrom(rv) }) }

// Close ends the watches and the server.
func (s *Server) Close() {
	s.end()
	s.http.Close()
}

// Config is how a client finds the server.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL, QPS: -1} }

// Store is a client of the server.
func (s *Server) Store(tb testing.TB, clk clock.Clock) *store.Store {
	tb.Helper()
	c, err := store.New(s.Config(), clk)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Before has f see each request first, and answer it if it says so. f may use the server.
func (s *Server) Before(f func(w http.ResponseWriter, r *http.Request) (answered bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.away.Load() {
		Refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the API server is away")
		return
	}
	_, object, _ := strings.Cut(r.URL.Path, "/namespaces/"+Namespace+"/")
	if selector := r.URL.Query().Get("labelSelector"); selector != "" {
		object += "?" + selector
	}
	s.mu.Lock()
	before := s.before
	s.requests = append(s.requests, r.Method+" "+object)
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	s.proxy.ServeHTTP(w, r)
	if r.Method != http.MethodGet {
		s.wrote()
	}
}

// Away has the server do nothing, and break the connections that it has, until it is called with false.
func (s *Server) Away(away bool) {
	if s.away.Store(away); away {
		s.http.CloseClientConnections()
	}
}

// Requests returns the requests so far, as "GET pods/worker-0" and "GET pods?labels", and forgets them.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

// Refuse answers with a Status.
func Refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(server.Refuse(code, string(reason), message).Body) // the client may be gone
}

// Put stores an object as a backup has it, whatever was there. Another object of its name is deleted first.
func (s *Server) Put(o *unstructured.Unstructured) {
	s.do(func(in *server.Server) {
		k := object.KindOf(resourceOf(o.GetKind()))
		if was := in.Get(k.Resource, o.GetName()); was != nil && object.UID(was.Object) != string(o.GetUID()) {
			in.Remove(was)
		}
		in.Put(k, o.DeepCopy().Object, server.Writer{Manager: Editor, Restores: true})
	})
}

// Change changes what is stored, as another client would.
func (s *Server) Change(kind, name string, edit func(o *unstructured.Unstructured)) {
	s.do(func(in *server.Server) {
		in.Change(resourceOf(kind), name, server.Writer{Manager: Editor}, func(o object.Object) { edit(&unstructured.Unstructured{Object: o}) })
	})
}

// Remove removes an object.
func (s *Server) Remove(kind, name string) {
	s.do(func(in *server.Server) { in.Remove(in.Get(resourceOf(kind), name)) })
}

// Get returns what is stored, nil for nothing.
func (s *Server) Get(kind, name string) (o *unstructured.Unstructured) {
	s.api.Alone(func(in *server.Server) {
		if v := in.Get(resourceOf(kind), name); v != nil {
			o = &unstructured.Unstructured{Object: object.Clone(v.Object)}
		}
	})
	return o
}

func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

func (s *Server) do(f func(*server.Server)) {
	s.api.Alone(f)
	s.wrote()
}

func (s *Server) wrote() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.news)
	s.news = make(chan struct{})
}

// Await returns when what is asked for has come, which is looked at after writes. It returns false if ctx ends before.
func (s *Server) Await(ctx context.Context, is func() bool) bool {
	for {
		s.mu.Lock()
		news := s.news
		s.mu.Unlock()
		if is() {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}
