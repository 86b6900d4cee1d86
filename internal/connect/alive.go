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
	// longest is the maximum time for which a client waits for a sign of life. If a connection dies unnoticed, a new count is late by twice that.
	longest = 5 * time.Second
	// shortest is the minimum time. With less, the client would leave servers that are merely busy.
	shortest = 500 * time.Millisecond
)

// patience configures how long a client waits for a connection.
type patience struct {
	// dial is the time limit for opening one.
	dial time.Duration
	// silent is the time of silence after which the client sends an HTTP/2 ping, and the time limit for the answer.
	silent time.Duration
}

// patienceFor returns the patience for this fence-after; 0 means no strict mode. docs/outages.md describes the consequences.
func patienceFor(fenceAfter time.Duration) patience {
	if fenceAfter == 0 {
		return patience{dial: longest, silent: longest}
	}
	bound := func(d time.Duration) time.Duration { return min(max(d, shortest), longest) }
	return patience{dial: bound(fenceAfter / 30), silent: bound(fenceAfter / 10)}
}

// Alive returns a copy of config whose clients soon replace a connection that does not answer. With client-go's own times they would do that only after 45 s. A
// client also reads its token file again after an answer that refuses the token, not only once a minute. It reads its CA file again after a certificate that it
// does not trust, not only every five minutes. fenceAfter is 0 without strict mode. A config with its own transport stays as it is.
func Alive(config *rest.Config, fenceAfter time.Duration) *rest.Config {
	if config.Transport != nil {
		return config
	}
	config = rest.CopyConfig(config)
	p, dial := patienceFor(fenceAfter), config.Dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: longest}).DialContext
	}
	// Because of its own dialer, the client shares its transport with no other client, so ping may change it.
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

// ping makes a transport send pings. It runs before all other wrappers except trusting.
func (p patience) ping(t http.RoundTripper) http.RoundTripper {
	if is := innermost(t); is != nil {
		// These override the times that client-go has set.
		is.HTTP2 = &http.HTTP2Config{SendPingTimeout: p.silent, PingTimeout: p.silent}
		is.TLSHandshakeTimeout = max(p.dial, p.silent)
	}
	return t
}

// innermost returns the transport that makes the connections, or nil if it is not an *http.Transport.
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
