package allocation

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// proxy stands between a client and the API server; it can cut every connection and refuse new ones.
type proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	refuses bool
}

func newProxy(config *rest.Config) *proxy {
	GinkgoHelper()
	u, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	l, err := new(net.ListenConfig).Listen(GinkgoT().Context(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	p := &proxy{listener: l, target: u.Host, conns: map[net.Conn]struct{}{}}
	var wg sync.WaitGroup
	ctx := GinkgoT().Context() // not asked for later: a client may still dial while the spec ends
	wg.Go(func() { p.serve(ctx) })
	DeferCleanup(func() {
		Expect(l.Close()).To(Succeed())
		p.cut(true)
		wg.Wait()
	})
	return p
}

// through returns config by way of the proxy.
func (p *proxy) through(config *rest.Config) { config.Host = "https://" + p.listener.Addr().String() }

func (p *proxy) serve(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
		if err != nil || !p.keep(client, server) {
			closeAll(client, server)
			continue
		}
		go pipe(client, server)
		go pipe(server, client)
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		return false
	}
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return true
}

// cut ends all connections, and refuses new ones until cut(false).
func (p *proxy) cut(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuse
	for c := range p.conns {
		closeAll(c)
		delete(p.conns, c)
	}
}

func pipe(to, from net.Conn) {
	_, err := io.Copy(to, from)
	_ = err // a cut connection is what this is for
	closeAll(to, from)
}

func closeAll(conns ...net.Conn) {
	for _, c := range conns {
		if c != nil {
			_ = c.Close() // it may be closed already
		}
	}
}
