package serve

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
)

// pipes is a listener without sockets, so that it can be used in a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8089} }

// near is a connection from the same pod.
type near struct{ net.Conn }

func (near) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5} }

// served starts a server in a bubble. connect opens a connection to it, and stop ends it and returns what Run returned.
func served(t *testing.T) (s *Server, connect func(sent string) net.Conn, stop func() error) {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s = NewServer("", NewHub(assigned(3, 5, 7)), nil)
	s.listener = p
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	connect = func(sent string) net.Conn {
		t.Helper()
		here, there := net.Pipe()
		p.conns <- near{there}
		if _, err := io.WriteString(here, sent); err != nil {
			t.Fatal(err)
		}
		return here
	}
	return s, connect, func() error { cancel(); return <-ended }
}

// get is a request of the identity.
func get(query, etag string) string {
	return "GET /v1/identity" + query + " HTTP/1.1\r\nHost: x\r\nIf-None-Match: " + etag + "\r\n\r\n"
}

func reply(t *testing.T, from net.Conn) answer {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(from), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	b, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Error(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func TestALongPollAnswersAtTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, connect, stop := served(t)
		etag := reply(t, connect(get("", ""))).header.Get("ETag")
		begin := time.Now()
		c := connect(get("?wait=1m", etag))
		time.Sleep(time.Second) //nolint:forbidigo // a bubble's
		synctest.Wait()
		if n := s.conns.waiting(); n != 1 {
			t.Fatalf("%d requests wait, want 1", n)
		}
		s.hub.Set(without(identity.StateDraining, 3))
		reply(t, c).want(t, 200, `"state":"draining","id":null,"count":3`)
		// A client with an old identity gets its answer at once.
		reply(t, connect(get("?wait=1m", etag))).want(t, 200, "draining")
		if took := time.Since(begin); took != time.Second {
			t.Errorf("the answers came after %s, and the change after 1s", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Other answers must be written within ten seconds of the request.
func TestALongPollMayTakeAsLongAsItAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, connect, stop := served(t)
		c := connect(get("", ""))
		etag := reply(t, c).header.Get("ETag")
		for query, want := range map[string]time.Duration{"?wait=1m": time.Minute, "?wait=24h": MaxWait} {
			begin := time.Now()
			c := connect(get(query, etag))
			if a := reply(t, c); a.code != 304 || time.Since(begin) != want {
				t.Errorf("%s: %d after %s", query, a.code, time.Since(begin))
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Each connection takes memory from the program beside it.
func TestAnUnusedConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, connect, stop := served(t)
		for name, c := range map[string]struct {
			sent string
			want time.Duration
		}{
			"half a request":             {"GET /readyz HTTP/1.1\r\n", readHeaderTimeout},
			"an answer that is not read": {get("", ""), writeTimeout},
		} {
			begin := time.Now()
			conn := connect(c.sent)
			time.Sleep(c.want - time.Millisecond) //nolint:forbidigo // a bubble's
			synctest.Wait()
			if s.conns.number() != 1 {
				t.Errorf("%s: closed too early", name)
			}
			time.Sleep(2 * time.Millisecond) //nolint:forbidigo // a bubble's
			synctest.Wait()
			if n := s.conns.number(); n != 0 {
				t.Errorf("%s: %d connections are open after %s", name, n, time.Since(begin))
			}
			_ = conn.Close()
		}
		begin := time.Now()
		c := connect(get("", ""))
		reply(t, c).want(t, 200, `"id":3`)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(begin) != idleTimeout {
			t.Errorf("after an answer: %v after %s", err, time.Since(begin))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The pod's grace period is for the program.
func TestAShutdownDoesNotWaitLongForAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, connect, stop := served(t)
		connect(get("", ""))
		synctest.Wait()
		begin := time.Now()
		if err := stop(); err != nil || time.Since(begin) != shutdownTimeout {
			t.Errorf("Run returned %v after %s", err, time.Since(begin))
		}
	})
}

func TestAServerThatFailsSaysSo(t *testing.T) {
	s := NewServer("127.0.0.1:0", NewHub(assigned(3, 5, 7)), nil)
	if at := s.Addr(); at != nil {
		t.Errorf("it is not bound yet, and its address is %s", at)
	}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "serving HTTP on") {
		t.Errorf("Run returned %v", err)
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	s := start(t, assigned(3, 5, 7), nil)
	s.do(t, "GET", "/v1/identity", strings.Repeat("x", 2*maxHeaderBytes)).want(t, http.StatusRequestHeaderFieldsTooLarge, "")
}

// Clients keep connections open between two long polls.
func TestAPollThatWasAnsweredMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, connect, stop := served(t)
		for token := int64(8); token <= 9; token++ {
			etag := reply(t, connect(get("", ""))).header.Get("ETag")
			conns := make([]net.Conn, maxPolls)
			for i := range conns {
				conns[i] = connect(get("?wait=1m", etag))
			}
			synctest.Wait()
			s.hub.Set(assigned(3, 5, token))
			for _, c := range conns {
				reply(t, c).want(t, 200, `"id":3`)
			}
		}
		reply(t, connect("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")).want(t, 200, "ok: 3/5")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
