package state

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
)

// separator cannot be in the name of a pod.
const separator = "_"

// Identity returns the identity of a candidate for the Lease, and the key in it. The API server's proxy cannot be told from any other
// client by its address. So a user who may read the Lease may read the state: the identity there has the key.
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
