package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

type ports struct {
	etcd, etcdPeer, api, controllers int
}

// The range lies below the one that Linux takes for outgoing connections
// (32768 and up). A port from that range could become the source port of a
// client that retries while the API server is down, and then the server could
// not have it back.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePorts holds each port until all are found, so that they differ.
func freePorts(ctx context.Context) (p ports, err error) {
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			err = errors.Join(err, listener.Close())
		}
	}()
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.api, &p.controllers} {
		listener, number, err := listen(ctx)
		if err != nil {
			return ports{}, err
		}
		held = append(held, listener)
		*port = number
	}
	return p, nil
}

// FreePort returns a port of this machine that no program listens on.
func FreePort(ctx context.Context) (int32, error) {
	listener, port, err := listen(ctx)
	if err != nil {
		return 0, err
	}
	return int32(port), listener.Close() //nolint:gosec // of the range
}

// FreeAddress returns such a port with the address.
func FreeAddress(ctx context.Context) (string, error) {
	port, err := FreePort(ctx)
	return local(int(port)), err
}

func listen(ctx context.Context) (net.Listener, int, error) {
	var last error
	for range 50 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // no secret
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", local(port))
		if err == nil {
			return listener, port, nil
		}
		last = err
	}
	return nil, 0, fmt.Errorf("no free port between %d and %d: %w", firstPort, lastPort, last)
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
