package allocation

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/idalloc/idalloc"
)

// link is a client's way to the API server, which can be cut.
type link struct {
	mu     sync.Mutex
	broken bool
	conns  map[net.Conn]struct{}
}

var errCut = errors.New("the cable was cut")

func newLink() *link { return &link{conns: map[net.Conn]struct{}{}} }

func (l *link) options(o *idalloc.Options) { o.Config.Dial = l.dial }

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return nil, errors.Join(errCut, c.Close())
	}
	l.conns[c] = struct{}{}
	return c, nil
}

// cut ends all connections; with broken there are no new ones either, until it is called again.
func (l *link) cut(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = broken
	for c := range l.conns {
		_ = c.Close() // it may be closed already
		delete(l.conns, c)
	}
}
