package state

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
)

// separator cannot occur in a pod's name.
const separator = "_"

// Identity returns the identity of a candidate for the Lease, and the key that it contains. A request through the API server's proxy cannot be recognised by
// its address. So a user who may read the Lease may read the state, with the key from the identity there.
func Identity(name string) (identity, key string) {
	key = rand.Text()
	return name + separator + key, key
}

// Holder returns the name and the key in an identity. The key is empty if Identity did not create it.
func Holder(identity string) (name, key string) {
	name, key, _ = strings.Cut(identity, separator)
	return name, key
}

func (l *Latest) knows(r *http.Request) bool {
	return l.Key != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(KeyHeader)), []byte(l.Key)) == 1
}
