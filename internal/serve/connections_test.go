package serve

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
)

// alone sends a request on a connection of its own, as a probe does.
func (s *testServer) alone(t *testing.T, path string) answer {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Errorf("GET %s: %v", path, err)
		return answer{}
	}
	defer resp.Body.Close() //nolint:errcheck // a read-only body
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("GET %s: %v", path, err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// polls starts n long polls, each on a connection of its own.
func (s *testServer) polls(t *testing.T, n int) <-chan answer {
	t.Helper()
	etag := s.alone(t, "/v1/identity").header.Get("ETag")
	answers := make(chan answer, n)
	for range n {
		go func() { answers <- s.do(t, "GET", "/v1/identity?wait=5m", etag) }()
	}
	return answers
}

// waiting waits until n requests wait for a change.
func (s *testServer) waiting(t *testing.T, n int) {
	t.Helper()
	for s.conns.waiting() != n {
		if t.Context().Err() != nil {
			t.Fatalf("%d requests wait, want %d", s.conns.waiting(), n)
		}
		runtime.Gosched()
	}
}

func TestPollsBeyondTheLimitAreToldToComeLater(t *testing.T) {
	const beyond = 10
	s := start(t, assigned(3, 5, 7), nil)
	answers := s.polls(t, maxPolls+beyond)
	for range beyond {
		a := <-answers
		a.want(t, http.StatusServiceUnavailable, "ask again in 5 s, or without wait")
		if a.header.Get("Retry-After") != "5" {
			t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
		}
	}
	s.alone(t, "/readyz").want(t, 200, "ok: 3/5")
	s.alone(t, "/healthz").want(t, 200, "ok")
	s.alone(t, "/v1/identity").want(t, 200, `"id":3`)
	s.hub.Set(assigned(3, 6, 7))
	for range maxPolls {
		(<-answers).want(t, 200, `"count":6`)
	}
	// The answered requests have made room.
	answers = s.polls(t, 1)
	s.waiting(t, 1)
	s.hub.Set(assigned(3, 7, 7))
	(<-answers).want(t, 200, `"count":7`)
}

// Each client that reaches the pod's address could keep its own program from hearing of changes.
func TestOthersLeaveHalfOfThePollsToThePod(t *testing.T) {
	c := newConnections()
	ask := func(peer string) (func(), bool) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/identity?wait=5m", http.NoBody)
		r.RemoteAddr = peer
		return c.wait(r)
	}
	from := func(peer string, want int) (last func()) {
		t.Helper()
		got := 0
		for done, ok := ask(peer); ok; done, ok = ask(peer) {
			got, last = got+1, done
		}
		if got != want {
			t.Errorf("%d requests from %s wait, want %d", got, peer, want)
		}
		return last
	}
	done := from("10.0.0.7:5", maxPolls/2)
	from("127.0.0.6:5", 0) // what a mesh delivers comes from elsewhere
	done()
	from("[fd00::7]:5", 1)
	from(self, maxPolls/2)
	from("10.0.0.7:5", 0)
}

// silent opens n connections that send this text and then nothing.
func (s *testServer) silent(t *testing.T, n int, sent string) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // the other side may have closed it
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		conns[i] = c
	}
	return conns
}

// number counts the open connections at one moment: each changes its state while others are counted.
func (c *connections) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

func TestProbesAreAnsweredWhateverConnectionsAreOpen(t *testing.T) {
	for name, sent := range map[string]string{
		"unused":          "",
		"half a request":  "GET /readyz HTTP/1.1\r\nHost: ",
		"after a request": "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, assigned(3, 5, 7), nil)
			answers := s.polls(t, maxPolls)
			s.waiting(t, maxPolls)
			conns := s.silent(t, 2*maxConnections, sent)
			s.alone(t, "/readyz").want(t, 200, "ok: 3/5")
			if n := s.conns.number(); n > maxConnections {
				t.Errorf("%d connections are open, want at most %d", n, maxConnections)
			}
			if _, err := io.Copy(io.Discard, conns[0]); err != nil {
				t.Logf("the oldest: %v", err) // reset or ended: it is closed, or this would not return
			}
			s.hub.Set(without(identity.StateDraining, 5))
			for range maxPolls {
				(<-answers).want(t, 200, "draining")
			}
		})
	}
}

func TestAClientThatGoesAwayMakesRoom(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	etag := s.alone(t, "/v1/identity").header.Get("ETag")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, maxPolls)
	for range maxPolls {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/v1/identity?wait=5m", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("If-None-Match", etag)
		go func() {
			defer func() { ended <- struct{}{} }()
			resp, err := http.DefaultClient.Do(r)
			if err == nil {
				t.Errorf("answered with %d", resp.StatusCode)
				_ = resp.Body.Close()
			}
		}()
	}
	s.waiting(t, maxPolls)
	cancel()
	for range maxPolls {
		<-ended
	}
	s.waiting(t, 0)
	answers := s.polls(t, 1)
	s.waiting(t, 1)
	s.hub.Set(assigned(3, 6, 7))
	(<-answers).want(t, 200, `"count":6`)
}

// from is a connection from this address.
type from struct {
	net.Conn

	address string
	closed  bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1} }
func (f *from) Close() error         { f.closed = true; return nil }

func TestANeighbourThatOpensThousandsClosesOnlyItsOwn(t *testing.T) {
	c := newConnections()
	probe, poll := &from{address: "10.0.0.1"}, &from{address: "127.0.0.1"}
	c.track(probe, http.StateNew)
	c.track(poll, http.StateNew)
	flood := make([]*from, 0, 8000)
	for range 8000 {
		conn := &from{address: "10.0.0.9"}
		c.track(conn, http.StateNew)
		flood = append(flood, conn)
	}
	if probe.closed || poll.closed {
		t.Error("the connection of a probe, or of the pod itself, is closed")
	}
	open := 0
	for _, conn := range flood {
		if !conn.closed {
			open++
		}
	}
	if open != maxConnections-2 || flood[len(flood)-1].closed {
		t.Errorf("%d connections of the neighbour are open, want %d, and the last one among them", open, maxConnections-2)
	}
}

// in counts the connections in this state.
func (c *connections) in(state http.ConnState) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, is := range c.open {
		if is.state == state {
			n++
		}
	}
	return n
}

// waiting counts the requests that wait for a change.
func (c *connections) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.polls
}
