package serve

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/idalloc/idalloc/internal/loopback"
)

const (
	// maxPolls is the maximum number of requests that wait for a change at the same time. Each needs about 26 KB.
	maxPolls = 128
	// maxDistantPolls is the maximum number of waiting requests from outside the pod. The rest is reserved for the pod's own programs.
	maxDistantPolls = maxPolls / 2
	// maxConnections is the maximum number of open connections. Half of them are for probes, and for clients that keep a connection open between two requests.
	maxConnections = 2 * maxPolls
)

// connections tracks the open connections of a server. There is always room for a new one. If there are too many, it closes a connection of the address that
// has most of them: the one that has been silent longest and whose request does not wait for a change. Refusing new connections instead would be wrong: silent
// or slow clients could then lock out the kubelet's probes. A client that opens thousands a second could also do that, if all addresses counted together.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]*connection
	// turn counts the events on all connections.
	turn uint64
	// polls counts the requests that wait for a change; distant counts those from outside the pod.
	polls, distant int
	stopping       bool
}

type connection struct {
	// host is the address of the client, without the port.
	host  string
	state http.ConnState
	// last is the value of turn at its last event.
	last uint64
	// waits is true while its request waits for a change.
	waits bool
}

func newConnections() *connections { return &connections{open: map[net.Conn]*connection{}} }

// track implements http.Server.ConnState.
//
// It closes new connections during a shutdown. http.Server gives each of them seconds to send its first request, and clients open some that they never use, so
// they would delay the shutdown.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
		return
	case http.StateNew:
		if c.stopping {
			_ = conn.Close() // to the client, the port seems to have closed a moment earlier
		}
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		c.open[conn] = &connection{host: host}
	case http.StateActive, http.StateIdle:
	}
	c.note(conn, func(is *connection) { is.state = state })
	if len(c.open) > maxConnections {
		c.closeSilent()
	}
}

// note updates the entry of a connection that is still open.
func (c *connections) note(conn net.Conn, change func(*connection)) {
	is, found := c.open[conn]
	if !found {
		return
	}
	c.turn++
	is.last = c.turn
	change(is)
}

// closeSilent closes a connection of the address that has most of them: the one that has been silent longest. There always is one, because fewer than half of
// the connections wait for a change.
func (c *connections) closeSilent() {
	from := map[string]int{}
	for _, is := range c.open {
		if !is.waits {
			from[is.host]++
		}
	}
	var silent net.Conn
	for conn, is := range c.open {
		if is.waits {
			continue
		}
		if silent != nil {
			other := c.open[silent]
			if have, most := from[is.host], from[other.host]; have < most || have == most && is.last > other.last {
				continue
			}
		}
		silent = conn
	}
	if silent != nil {
		delete(c.open, silent)
		_ = silent.Close()
	}
}

// connectionKey is the context key for the connection of a request.
type connectionKey struct{}

// name implements http.Server.ConnContext.
func (*connections) name(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// wait records that the request waits for a change, until done is called. If too many requests already wait, it records nothing, and ok is false.
func (c *connections) wait(r *http.Request) (done func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	distant := 0
	if !loopback.Is(r) {
		distant = 1
	}
	if c.polls >= maxPolls || c.distant+distant > maxDistantPolls {
		return nil, false
	}
	c.polls++
	c.distant += distant
	conn, _ := r.Context().Value(connectionKey{}).(net.Conn) // nil if the routes are mounted into another server
	c.note(conn, func(is *connection) { is.waits = true })
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.polls--
		c.distant -= distant
		c.note(conn, func(is *connection) { is.waits = false })
	}, true
}

// refuse closes the connections without a request, and all new ones from now on.
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
