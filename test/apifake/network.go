package apifake

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Network leads to a server that speaks HTTP/2, within this process. So it also works in the virtual time of a synctest bubble.
type Network struct {
	server *httptest.Server
	next   chan net.Conn
	ended  chan struct{}
	end    sync.Once

	// Refuses has new connections refused, and Silent has nothing come through them.
	Refuses, Silent atomic.Bool

	mu    sync.Mutex
	links []*link
}

// link is the client's end of a connection.
type link struct {
	net.Conn

	cut atomic.Bool
}

// Write implements net.Conn.
func (l *link) Write(data []byte) (int, error) {
	if l.cut.Load() {
		return len(data), nil
	}
	return l.Conn.Write(data)
}

// NewNetwork starts a server behind a network. It ends with the test.
func NewNetwork(tb testing.TB, handler http.Handler) *Network {
	tb.Helper()
	n := &Network{next: make(chan net.Conn), ended: make(chan struct{})}
	n.server = &httptest.Server{Listener: n, EnableHTTP2: true, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	n.server.StartTLS()
	tb.Cleanup(n.server.Close)
	return n
}

// Config is how a client finds the server.
func (n *Network) Config() *rest.Config {
	return &rest.Config{Host: n.server.URL, Dial: n.dial, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// Cut has nothing come through the connections that there are. They stay open.
func (n *Network) Cut() {
	n.each(func(l *link) { l.cut.Store(true) })
}

// Break closes the connections that there are.
func (n *Network) Break() {
	n.each(func(l *link) { _ = l.Close() })
}

func (n *Network) each(do func(*link)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		do(l)
	}
}

func (n *Network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if n.Refuses.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	next := n.next
	if n.Silent.Load() {
		next = nil
	}
	client, server := net.Pipe()
	select {
	case next <- server:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l := &link{Conn: client}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links = append(n.links, l)
	return l, nil
}

// Accept implements net.Listener.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.next:
		return c, nil
	case <-n.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *Network) Close() error {
	n.end.Do(func() { close(n.ended) })
	return nil
}

// Addr implements net.Listener.
func (n *Network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }
