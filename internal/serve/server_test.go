package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/meter"
	"github.com/idalloc/idalloc/pkg/identity"
)

// answer has the parts of a response that tests check. Its maker closes the body.
type answer struct {
	code   int
	header http.Header
	body   string
}

type testServer struct {
	*Server
	hub  *Hub
	base string
	// stop ends Run and returns what it returned.
	stop func() error
}

func start(t *testing.T, initial identity.Identity, health HealthFunc, counted ...func(io.Writer) error) *testServer {
	t.Helper()
	hub := NewHub(initial)
	s := NewServer("127.0.0.1:0", hub, health)
	for _, m := range counted {
		s.ServeMetrics(m)
	}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	ts := &testServer{Server: s, hub: hub, base: "http://" + s.Addr().String()}
	ts.stop = func() error {
		cancel()
		stopped = true
		return <-ended
	}
	t.Cleanup(func() {
		if !stopped {
			if err := ts.stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	})
	return ts
}

func (s *testServer) do(t *testing.T, method, path, known string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.base+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if known != "" {
		r.Header.Set("If-None-Match", known)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return answer{}
	}
	defer resp.Body.Close() //nolint:errcheck // a read-only body
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func (a answer) want(t *testing.T, code int, part string) {
	t.Helper()
	if a.code != code || !strings.Contains(a.body, part) {
		t.Errorf("answer is %d %q, want %d with %q", a.code, a.body, code, part)
	}
}

func TestIdentityHasAStrongETagThatSurvivesARestart(t *testing.T) {
	first := start(t, assigned(3, 5, 7), nil)
	a := first.do(t, "GET", "/v1/identity", "")
	a.want(t, 200, `"state":"assigned","id":3,"count":5,"token":7,"tokenText":"7"`)
	etag := a.header.Get("ETag")
	if !strings.HasPrefix(etag, `"`) || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("headers are %v", a.header)
	}
	for _, known := range []string{etag, "*", `"x", ` + etag, "W/" + etag} {
		if a := first.do(t, "GET", "/v1/identity", known); a.code != 304 || a.body != "" || a.header.Get("ETag") != etag {
			t.Errorf("If-None-Match %s: %+v", known, a)
		}
	}
	first.do(t, "GET", "/v1/identity", `"x"`).want(t, 200, `"id":3`)
	if got := start(t, assigned(3, 5, 7), nil).do(t, "GET", "/v1/identity", "").header.Get("ETag"); got != etag {
		t.Errorf("the tag was %s and is %s after a restart", etag, got)
	}
	first.hub.Set(assigned(3, 6, 7))
	if got := first.do(t, "GET", "/v1/identity", etag); got.code != 200 || got.header.Get("ETag") == etag {
		t.Errorf("after a change of count: %+v", got)
	}
}

func TestABadWaitIsRefusedWithASentence(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	for _, wait := range []string{"30", "-1s", "soon"} {
		s.do(t, "GET", "/v1/identity?wait="+wait, "").want(t, 400, "give a number with a unit such as wait=30s")
	}
	s.do(t, "GET", "/v1/identity?wait=0s", "").want(t, 200, `"id":3`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/identity?wait=10h", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if wait, err := parseWait(r); err != nil || wait != MaxWait {
		t.Errorf("wait=10h is %s, %v; want the cap %s", wait, err, MaxWait)
	}
}

func TestStaleIsAHeaderOnly(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	fresh := s.do(t, "GET", "/v1/identity", "")
	s.hub.SetStale(true)
	stale := s.do(t, "GET", "/v1/identity", "")
	if stale.header.Get(StaleHeader) != "true" || fresh.header.Get(StaleHeader) != "" {
		t.Errorf("%s is %q, then %q", StaleHeader, fresh.header.Get(StaleHeader), stale.header.Get(StaleHeader))
	}
	if stale.body != fresh.body || stale.header.Get("ETag") != fresh.header.Get("ETag") {
		t.Error("body or ETag changed with it")
	}
	s.do(t, "GET", "/readyz", "").want(t, 200, "ok: 3/5")
}

func TestReadyOnlyWhileAssigned(t *testing.T) {
	s := start(t, without(identity.StatePending, 5), nil)
	s.do(t, "GET", "/readyz", "").want(t, 503, "the state is pending")
	s.hub.Set(assigned(3, 5, 7))
	s.do(t, "GET", "/readyz", "").want(t, 200, "ok")
	s.hub.Set(without(identity.StateLost, 5))
	s.do(t, "GET", "/readyz", "").want(t, 503, "the state is lost")
}

func TestHealthSaysWhy(t *testing.T) {
	start(t, without(identity.StatePending, 5), nil).do(t, "GET", "/healthz", "").want(t, 200, "ok")
	sick := func(context.Context) error { return errors.New("the loop stands still since 3m") }
	start(t, assigned(3, 5, 7), sick).do(t, "GET", "/healthz", "").want(t, 503, "the loop stands still since 3m")
}

func TestMethodsAndPaths(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	for _, path := range []string{"/v1/identity", "/readyz", "/healthz"} {
		if a := s.do(t, "HEAD", path, ""); a.code != 200 || a.body != "" {
			t.Errorf("HEAD %s: %+v", path, a)
		}
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			if a := s.do(t, method, path, ""); a.code != 405 || a.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, a.code, a.header.Get("Allow"))
			}
		}
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
		if a := s.do(t, method, "/v1/drained", ""); a.code != 405 || a.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, a.code, a.header.Get("Allow"))
		}
	}
	for _, path := range []string{"/", "/v1", "/v1/identity/", "/readyz/x"} {
		s.do(t, "GET", path, "").want(t, 404, "")
	}
}

func TestShutdownEndsLongPolls(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	etag := s.do(t, "GET", "/v1/identity", "").header.Get("ETag")
	s.until(t, http.StateIdle, 1) // or that connection could be taken for a long poll's
	codes := make(chan int, 3)
	for range cap(codes) {
		go func() { codes <- s.do(t, "GET", "/v1/identity?wait=5m", etag).code }()
	}
	s.until(t, http.StateActive, cap(codes))
	if err := s.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	for range cap(codes) {
		if code := <-codes; code != 304 {
			t.Errorf("a long poll ended with %d, want 304", code)
		}
	}
	if s.forced {
		t.Error("the shutdown cut answers off")
	}
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr().String()); err == nil {
		t.Error("the port is still bound")
	}
}

func TestShutdownDoesNotWaitForAnUnusedConnection(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it is closed by the other side
	s.until(t, http.StateNew, 1)
	if err := s.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if s.forced {
		t.Error("the shutdown waited until its limit")
	}
}

// until waits until the server has n connections in this state.
func (s *testServer) until(t *testing.T, state http.ConnState, n int) {
	t.Helper()
	for s.conns.in(state) < n {
		if t.Context().Err() != nil {
			t.Fatalf("%d connections %s, want %d", s.conns.in(state), state, n)
		}
		runtime.Gosched()
	}
}

func TestAnAddressInUseSaysWhatToDo(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	err := NewServer(s.Addr().String(), s.hub, nil).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "choose another one with --http-address") {
		t.Errorf("error is %v", err)
	}
	err = NewServer("nonsense", s.hub, nil).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "give --http-address a host and port") {
		t.Errorf("error is %v", err)
	}
}

// text is what GET /metrics answers with.
type text string

func (m text) WriteText(w io.Writer) error {
	_, err := io.WriteString(w, string(m))
	return err
}

func TestMetricsAreServed(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	s.do(t, "GET", "/metrics", "").want(t, 404, "")
	m := start(t, assigned(3, 5, 7), nil, text("idalloc_id 3\n").WriteText)
	a := m.do(t, "GET", "/metrics", "")
	a.want(t, 200, "idalloc_id 3\n")
	if got := a.header.Get("Content-Type"); got != meter.ContentType {
		t.Errorf("the content type is %s", got)
	}
	m.do(t, "POST", "/metrics", "").want(t, 405, "")
}

// What a refusal says is for people who ask why the pod is not Ready.
func TestReadinessSaysWhatIsWaitedFor(t *testing.T) {
	s := NewServer("127.0.0.1:0", NewHub(identity.Pending("p", "n")), nil)
	var waits string
	s.SayWhy(func() string { return waits })
	for _, waits = range []string{"", "the API server to accept the Lease"} {
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
		if body := answer.Body.String(); answer.Code != http.StatusServiceUnavailable || !strings.Contains(body, "the state is pending") || strings.Contains(body, "waits for") != (waits != "") {
			t.Errorf("the answer is %d %q", answer.Code, body)
		}
	}
}

// Addr returns the address that Listen has bound, or nil before that.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}
