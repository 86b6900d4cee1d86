package webhook

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
)

const (
	// usualBody is the size in bytes up to which any number of bodies may be read at a time. Pods are seldom larger.
	usualBody = 128 << 10
	// maxBody is the size in bytes of the largest body. The API server accepts requests of up to 3 MiB, and etcd stores less.
	maxBody = 4 << 20
	// maxLarge is the maximum number of bodies above usualBody at a time.
	maxLarge = 8
)

// bounded limits the memory that bodies take, because any neighbour may send some. A client that sends its body slowly delays no other client's usual pods.
func bounded(next http.Handler) http.Handler {
	large := make(chan struct{}, maxLarge)
	var decoding sync.Mutex // a decoded body takes many times its size
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, usualBody))
		if err == nil && len(body) == usualBody {
			select {
			case large <- struct{}{}:
				defer func() { <-large }()
			default:
				http.Error(w, "too many large pods at a time: try again", http.StatusServiceUnavailable)
				return
			}
			var rest []byte
			rest, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody-usualBody))
			body = slices.Concat(body, rest)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		decoding.Lock()
		defer decoding.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}
