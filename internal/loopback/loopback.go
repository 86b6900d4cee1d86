// Package loopback distinguishes requests from containers of this pod from other requests.
package loopback

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Is reports whether a request comes from a container of this pod, or through a port-forward to it, judged by its address. The containers share the loopback
// interface. A mesh's proxy there delivers requests from elsewhere with another loopback address: Istio's from 127.0.0.6.
func Is(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	at := peer.Addr().Unmap()
	return err == nil && (at == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || at == netip.IPv6Loopback())
}

// Forwarded returns the name of a header which shows that a proxy passed the request on, or "".
func Forwarded(r *http.Request) string {
	for name := range r.Header {
		if slices.ContainsFunc(prefixes(), func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return name
		}
	}
	return ""
}

// prefixes returns the prefixes of headers that proxies add.
func prefixes() []string {
	return []string{
		"Forwarded", "Via", "True-Client-Ip", "X-Forwarded", "X-Real-", "X-Client-", "X-Cluster-Client-", "X-Original-", "X-Envoy-", "L5d-",
	}
}
