package main

import (
	"context"
	"net"
	"sync"
)

// wire opens connections whose bytes are counted, and closes them all at the end: an HTTP/2 client keeps
// an idle one, and the server would carry a thousand of them into the next run.
type wire struct {
	count *requests

	mu    sync.Mutex
	conns []net.Conn
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	return counted{Conn: c, count: w.count}, nil
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close() // it may be closed already
	}
	w.conns = nil
}

type counted struct {
	net.Conn
	count *requests
}

func (c counted) Read(b []byte) (n int, err error) {
	n, err = c.Conn.Read(b)
	c.count.gets(n)
	return n, err
}
