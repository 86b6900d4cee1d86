package connect

import (
	"context"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

const (
	// longest is how long a client waits at most for a sign of life. A new count is late by twice that if a connection dies unnoticed.
	longest = 5 * time.Second
	// shortest is how long it waits at least. Otherwise it would leave servers that are merely busy.
	shortest = 500 * time.Millisecond
)

// patience is how long a client waits for a connection.
type patience struct {
	// dial is how long it may take to make one.
	dial time.Duration
	// silent is after which silence the client sends an HTTP/2 ping, and how long the answer to that may take.
	silent time.Duration
}

// patienceFor returns the patience of a client with this fence-after, 0 without strict mode. docs/outages.md has what follows from it.
func patienceFor(fenceAfter time.Duration) patience {
	if fenceAfter == 0 {
		return patience{dial: longest, silent: longest}
	}
	bound := func(d time.Duration) time.Duration { return min(max(d, shortest), longest) }
	return patience{dial: bound(fenceAfter / 30), silent: bound(fenceAfter / 10)}
}

// Alive returns a copy of config whose clients leave a connection early that does not answer, and make a new one. By client-go's own times they
// would leave it after 45 s. A client also reads its token file again after an answer that refuses the token, and not only once a minute, and its CA file
// after a certificate that it does not trust, and not only every five minutes.
// fenceAfter is 0 without strict mode. A config with a transport of its own stays as it is.
func Alive(config *rest.Config, fenceAfter time.Duration) *rest.Config {
	if config.Transport != nil {
		return config
	}
	config = rest.CopyConfig(config)
	p, dial := patienceFor(fenceAfter), config.Dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: longest}).DialContext
	}
	// Because of its dialer the client shares its transport with no other one, so that ping may change it.
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, p.dial)
		defer cancel()
		return dial(ctx, network, address)
	}
	wrap := []transport.WrapperFunc{p.ping, config.WrapTransport}
	if file := config.CAFile; file != "" && len(config.CAData) == 0 {
		wrap = append([]transport.WrapperFunc{func(t http.RoundTripper) http.RoundTripper { return &trusting{file: file, now: t} }}, wrap...)
	}
	if file := config.BearerTokenFile; file != "" {
		config.BearerToken, config.BearerTokenFile = "", ""
		wrap = append(wrap, transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(file)))
	}
	config.WrapTransport = transport.Wrappers(wrap...)
	return config
}

// ping has a transport send pings. It comes before all other wrappers, but for trusting.
func (p patience) ping(t http.RoundTripper) http.RoundTripper {
	if is := innermost(t); is != nil {
		// These go before the times that client-go has set.
		is.HTTP2 = &http.HTTP2Config{SendPingTimeout: p.silent, PingTimeout: p.silent}
		is.TLSHandshakeTimeout = max(p.dial, p.silent)
	}
	return t
}

// innermost returns the transport that makes the connections, nil if it is none of net/http.
func innermost(t http.RoundTripper) *http.Transport {
	for {
		switch is := t.(type) {
		case *http.Transport:
			return is
		case utilnet.RoundTripperWrapper:
			t = is.WrappedRoundTripper()
		default:
			return nil
		}
	}
}
