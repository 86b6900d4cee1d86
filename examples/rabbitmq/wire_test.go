package main

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net"
	neturl "net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// What a file in the directory of probeEnv, POD.wire, makes of a consumer's connections.
const (
	wireEnv    = "ORDERS_WIRES"
	wireSuffix = ".wire"
	// wireCut: nothing passes between the consumer and the broker, and nothing says so.
	wireCut = "cut"
	// wireLoss: one packet in five is lost between the consumer and broker and API server.
	wireLoss = "loss"
)

// wire carries a consumer's connections, in the process of the consumer.
type wire struct {
	file string
	// cuts says that a cut concerns it.
	cuts bool
}

// behindWires has broker and API server reached through wires, where wireEnv asks for that.
func behindWires(ctx context.Context) (*rest.Config, error) {
	if os.Getenv(wireEnv) != "true" {
		return nil, nil //nolint:nilnil // idalloc finds the API server by itself
	}
	file := filepath.Join(os.Getenv(probeEnv), os.Getenv("POD_NAME")+wireSuffix)
	broker, err := neturl.Parse(os.Getenv("RABBITMQ_URL"))
	if err != nil {
		return nil, err
	}
	if broker.Host, err = (wire{file, true}).to(ctx, broker.Host); err != nil {
		return nil, err
	}
	if err := os.Setenv("RABBITMQ_URL", broker.String()); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	server, err := neturl.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	config.ServerName = server.Hostname()
	server.Host, err = wire{file, false}.to(ctx, server.Host)
	config.Host = server.String()
	return config, err
}

// to returns an address that leads to another one, until ctx ends.
func (w wire) to(ctx context.Context, address string) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go w.join(ctx, near, address)
		}
	}()
	return listener.Addr().String(), nil
}

func (w wire) join(ctx context.Context, near net.Conn, address string) {
	defer func() { _ = near.Close() }()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	var both sync.WaitGroup
	both.Go(func() { w.carry(ctx, near, far) })
	both.Go(func() { w.carry(ctx, far, near) })
	both.Wait()
}

// carry carries packets one way until one end closes.
func (w wire) carry(ctx context.Context, to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	packet := make([]byte, 1400)
	for {
		n, err := from.Read(packet)
		w.pass(ctx)
		if n > 0 {
			if _, err := to.Write(packet[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass returns when a packet has passed. One that is lost is sent again, each time after twice as long, as TCP does on Linux.
func (w wire) pass(ctx context.Context) {
	const look, rto, share = 20 * time.Millisecond, 200 * time.Millisecond, 0.2
	for again := rto; ctx.Err() == nil; {
		how, err := os.ReadFile(w.file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return
		case string(how) == wireCut && w.cuts:
			pause(ctx, look)
		case string(how) == wireLoss && rand.Float64() < share: //nolint:gosec // no secret
			pause(ctx, again)
			again *= 2
		default:
			return
		}
	}
}
