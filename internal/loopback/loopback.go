// Package loopback tells requests of the containers of a pod from those of others.
package loopback

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Is reports whether a request comes from a container of this pod, or through a port-forward to it, as far as its address says. The containers
// share the loopback interface. A mesh's proxy there delivers what comes from elsewhere, from another address of it: Istio's from 127.0.0.6.
func Is(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	at := peer.Addr().Unmap()
	return err == nil && (at == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || at == netip.IPv6Loopback())
}

// Forwarded returns the name of a header by which a request shows that a proxy passed it on. It returns an empty name if there is none.
func Forwarded(r *http.Request) string {
	for name := range r.Header {
		if slices.ContainsFunc(prefixes(), func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return name
		}
	}
	return ""
}

// prefixes are those of the names of headers that proxies add.
func prefixes() []string {
	return []string{
		"Forwarded", "Via", "True-Client-Ip", "X-Forwarded", "X-Real-", "X-Client-", "X-Cluster-Client-", "X-Original-", "X-Envoy-", "L5d-",
	}
}
