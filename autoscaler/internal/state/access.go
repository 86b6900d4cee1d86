package state

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// separator cannot be in the name of a pod.
const separator = "_"

// Identity returns the identity of a candidate for the Lease, and the key in it. The API server's proxy cannot be told from any other
// client by its address. So whoever may read the Lease may read the state: the identity there has the key.
func Identity(name string) (identity, key string) {
	key = rand.Text()
	return name + separator + key, key
}

// Holder returns the name and the key in an identity. An identity that Identity did not make has no key.
func Holder(identity string) (name, key string) {
	name, key, _ = strings.Cut(identity, separator)
	return name, key
}

func (l *Latest) knows(r *http.Request) bool {
	return l.Key != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(KeyHeader)), []byte(l.Key)) == 1
}

// local reports whether a request comes from this pod, or from a port-forward to it, and nobody passed it on. The proxy of a service mesh has
// another loopback address, or adds a header.
func local(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !slices.Contains([]string{"127.0.0.1", "::1"}, peer.Addr().Unmap().String()) {
		return false
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains([]string{"Forwarded", "Via", "X-Real-Ip"}, name) {
			return false
		}
	}
	return true
}
