package serve

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Each connection takes memory, and any neighbour may open thousands.
func TestABoundedServerKeepsFewConnectionsAndNoneForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, server := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}, Bounded(http.NotFoundHandler())
		go func() { _ = server.Serve(listener) }()
		const many = 2 * maxConnections
		ends := make([]net.Conn, many)
		for i := range ends {
			here, there := net.Pipe()
			listener.conns <- there
			ends[i] = here
			if _, err := io.WriteString(here, "GET / HTTP/1.1\r\n"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := open(t, ends); n != maxConnections {
			t.Errorf("%d of %d connections are open, want %d", n, many, maxConnections)
		}
		time.Sleep(readHeaderTimeout) //nolint:forbidigo // a bubble's
		synctest.Wait()
		if n := open(t, ends); n != 0 {
			t.Errorf("%d half requests still have a connection", n)
		}
		_ = server.Close()
	})
}

// open counts the connections that the other side has not closed.
func open(t *testing.T, ends []net.Conn) (n int) {
	t.Helper()
	for _, c := range ends {
		if err := c.SetReadDeadline(time.Now().Add(time.Nanosecond)); err != nil {
			continue
		}
		if _, err := c.Read(make([]byte, 1)); err != nil && err.Error() != io.EOF.Error() {
			n++
		}
	}
	return n
}
