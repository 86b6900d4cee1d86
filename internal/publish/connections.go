package publish

import (
	"context"
	"net"
	"net/http"
	"sync"
)

const (
	// maxPolls is how many requests may wait for a change at a time. Each takes about 26 KB.
	maxPolls = 128
	// maxConnections is how many connections are open at a time. The other half is for probes, and for
	// clients that keep a connection between two requests.
	maxConnections = 2 * maxPolls
)

// connections are those that a server has open. There is always room for a new one: when there are too
// many, the one that has been silent longest is closed, unless its request waits for a change. A limit on
// what is accepted would let clients that are idle, or slow to ask, keep the kubelet's probes out.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]*connection
	// turn counts what happened on all of them.
	turn uint64
	// polls is how many requests wait for a change.
	polls    int
	stopping bool
}

type connection struct {
	state http.ConnState
	// last is when something happened on it.
	last uint64
	// waits says that its request waits for a change.
	waits bool
}

func newConnections() *connections { return &connections{open: map[net.Conn]*connection{}} }

// track is for http.Server.ConnState. A connection on which no request has begun would hold up the
// shutdown for seconds: http.Server gives it time for its first request, and clients open some that they never use.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
		return
	case http.StateNew:
		if c.stopping {
			_ = conn.Close() // as if the port had been closed a moment earlier
		}
		c.open[conn] = &connection{}
	case http.StateActive, http.StateIdle:
	}
	c.note(conn, func(is *connection) { is.state = state })
	if len(c.open) > maxConnections {
		c.closeSilent()
	}
}

// note changes what is known of a connection that is open still.
func (c *connections) note(conn net.Conn, change func(*connection)) {
	is, found := c.open[conn]
	if !found {
		return
	}
	c.turn++
	is.last = c.turn
	change(is)
}

// closeSilent closes the connection that has been silent longest. There is one: fewer than half of them wait.
func (c *connections) closeSilent() {
	var silent net.Conn
	for conn, is := range c.open {
		if !is.waits && (silent == nil || is.last < c.open[silent].last) {
			silent = conn
		}
	}
	if silent != nil {
		delete(c.open, silent)
		_ = silent.Close()
	}
}

// connectionKey is of the context value that has a request's connection.
type connectionKey struct{}

// name is for http.Server.ConnContext.
func (*connections) name(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// wait notes that the request of ctx waits for a change, until done is called. ok is false, and nothing is noted,
// when too many wait already.
func (c *connections) wait(ctx context.Context) (done func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.polls >= maxPolls {
		return nil, false
	}
	c.polls++
	conn, _ := ctx.Value(connectionKey{}).(net.Conn) // none in a server of somebody else's
	c.note(conn, func(is *connection) { is.waits = true })
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.polls--
		c.note(conn, func(is *connection) { is.waits = false })
	}, true
}

// refuse closes the connections without a request, and those that still come.
func (c *connections) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	for conn, is := range c.open {
		if is.state == http.StateNew {
			_ = conn.Close()
		}
	}
}

// in counts the connections in a state.
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
