package connect_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/internal/connect"
)

// network has connections to a server. Those that are cut stay open, and nothing comes through.
type network struct {
	mu     sync.Mutex
	links  []*link
	next   chan net.Conn
	ended  chan struct{}
	closed sync.Once
}

type link struct {
	net.Conn

	cut atomic.Bool
}

func (l *link) Write(data []byte) (int, error) {
	if l.cut.Load() {
		return len(data), nil
	}
	return l.Conn.Write(data)
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	l := &link{Conn: client}
	n.mu.Lock()
	n.links = append(n.links, l)
	n.mu.Unlock()
	select {
	case n.next <- server:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		l.cut.Store(true)
	}
}

// Accept implements net.Listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.next:
		return c, nil
	case <-n.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *network) Close() error {
	n.closed.Do(func() { close(n.ended) })
	return nil
}

// Addr implements net.Listener.
func (n *network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// serve starts an HTTP/2 server on a network, which answers each request, and then never ends the answer to one for /watch.
func serve(t *testing.T) (*network, *rest.Config) {
	t.Helper()
	n := &network{next: make(chan net.Conn), ended: make(chan struct{})}
	s := &httptest.Server{Listener: n, EnableHTTP2: true, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/watch" {
			<-r.Context().Done()
		}
	})}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return n, &rest.Config{Host: s.URL, Dial: n.dial, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func clientOf(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(request)
}

// A balancer forgets its connections. Packets of theirs are dropped, and new connections pass.
func TestAConnectionThatDiesUnnoticedIsMadeAgain(t *testing.T) {
	for fenceAfter, within := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Hour: 10 * time.Second, 30 * time.Second: 6 * time.Second, 3 * time.Second: time.Second} {
		t.Run(fenceAfter.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, config := serve(t)
				client := clientOf(t, connect.Alive(config, fenceAfter))
				watch, err := get(t, client, config.Host+"/watch")
				if err != nil {
					t.Fatal(err)
				}
				if watch.ProtoMajor != 2 {
					t.Fatalf("the client speaks %s", watch.Proto)
				}
				synctest.Wait()
				n.cut()
				at := time.Now()
				if _, err := io.ReadAll(watch.Body); err == nil {
					t.Error("a watch ends as if all were well")
				}
				if took := time.Since(at); took > within {
					t.Errorf("a watch hears nothing for %s, want %s", took, within)
				}
				answer, err := get(t, client, config.Host+"/")
				if err != nil {
					t.Fatal("the next request fails: ", err)
				}
				_ = answer.Body.Close()
				_ = watch.Body.Close()
			})
		})
	}
}

// Packets of all connections are dropped.
func TestAConnectionThatCannotBeMadeIsGivenUp(t *testing.T) {
	for fenceAfter, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 30 * time.Second: time.Second, 3 * time.Second: time.Second / 2} {
		t.Run(fenceAfter.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := clientOf(t, connect.Alive(&rest.Config{Host: "https://192.0.2.1", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}}, fenceAfter))
				at := time.Now()
				answer, err := get(t, client, "https://192.0.2.1/")
				if err == nil {
					_ = answer.Body.Close()
				}
				if took := time.Since(at); !errors.Is(err, context.DeadlineExceeded) || took != want {
					t.Errorf("after %s: %v, want an end after %s", took, err, want)
				}
			})
		})
	}
}

// The kubelet has written a new token meanwhile.
func TestATokenThatIsRefusedIsReadAgainAtOnce(t *testing.T) {
	var valid atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+*valid.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	renew := func(token string) {
		valid.Store(&token)
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	renew("first")
	client := clientOf(t, connect.Alive(&rest.Config{Host: server.URL, BearerToken: "first", BearerTokenFile: file}, 0))
	ask := func(what string, want int) {
		t.Helper()
		answer, err := get(t, client, server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: the answer is %d, want %d", what, answer.StatusCode, want)
		}
	}
	ask("with the first token", http.StatusOK)
	renew("second")
	ask("with the first token, which is not valid any more", http.StatusUnauthorized)
	ask("after that", http.StatusOK)
}

// Somebody who has a transport of their own knows what they do.
func TestATransportOfOnesOwnStays(t *testing.T) {
	config := &rest.Config{Transport: http.DefaultTransport}
	if connect.Alive(config, time.Minute) != config {
		t.Error("the config changes")
	}
}
