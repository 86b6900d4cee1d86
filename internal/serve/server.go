package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	// shutdownTimeout is the time that running answers have at a shutdown. Long polls end at once.
	shutdownTimeout = 3 * time.Second
	maxHeaderBytes  = 16 << 10
)

// Server answers GET /v1/identity, /readyz and /healthz from a Hub. It also answers GET /metrics, and POST /v1/drained, /v1/pause and /v1/resume.
type Server struct {
	*handler

	address string
	http    *http.Server

	mu       sync.Mutex
	listener net.Listener
	forced   bool // the shutdown has cut off answers
}

// NewServer returns a server for an address such as ":8089". It does not bind the address yet. If health is nil, /healthz always answers 200.
func NewServer(address string, hub *Hub, health HealthFunc) *Server {
	h := &handler{hub: hub, health: health, closing: make(chan struct{}), conns: newConnections()}
	return &Server{handler: h, address: address, http: &http.Server{
		Handler: h.routes(), ReadHeaderTimeout: readHeaderTimeout,
		// There is no ReadTimeout, because it would end the context of a long poll.
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ConnState: h.conns.track, ConnContext: h.conns.name,
	}}
}

// OnDrained sets the handler of the program's POST /v1/drained. Without one, the server answers 409. Call it before Run.
func (s *Server) OnDrained(drained DrainedFunc) { s.drained = drained }

// SayWhy sets the function that explains what the instance waits for; it returns "" if it waits for nothing. GET /readyz shows the text. Call it before Run.
func (s *Server) SayWhy(waiting func() string) { s.waiting = waiting }

// ServeMetrics sets what writes the answer of GET /metrics, in Prometheus' text format. Without it, the server answers 404. Call it before Run.
func (s *Server) ServeMetrics(write func(io.Writer) error) { s.metrics = write }

// Handler returns the handler of all routes, for use in the caller's own server.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Listen binds the address. Call it before Run to notice early that the address is in use; otherwise Run calls it. A second call does nothing. The error
// explains what is wrong with the address.
func (s *Server) Listen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if errors.Is(err, syscall.EADDRINUSE) {
		// Error: exit code 1: the port is in use.
		// Do: set `--http-address`.
		return fmt.Errorf("cannot serve HTTP on %q, another process of the pod uses that port: "+
			"choose another one with --http-address, for example --http-address=:18089, and change the probes with it: %w", s.address, err)
	}
	if err != nil {
		return fmt.Errorf("cannot serve HTTP on %q: give --http-address a host and port such as :8089, or \"\" to turn HTTP off: %w", s.address, err)
	}
	s.listener = l
	return nil
}

// Run serves until ctx ends. Then it ends the long polls, gives running answers three seconds to finish, and returns nil. If the server fails earlier, Run
// returns the error. Call it once.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving HTTP on %q: %w", s.address, err)
	case <-ctx.Done():
	}
	close(s.closing)
	s.conns.refuse()
	// ctx has ended, but the shutdown needs some time.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(stop); err != nil {
		// A client does not read its answer. The process is about to end anyway. Close also closes what Shutdown could not.
		s.forced = true
		return s.http.Close()
	}
	return nil
}
