package serve

import (
	"crypto/subtle"
	"net/http"
)

// SecretHeader is the header in which the program sends the content of the file publish.SecretName.
const SecretHeader = "Idalloc-Drain-Secret" //nolint:gosec // the name of a header, not a secret

// RequireSecret sets the secret that each POST must have. Without a secret, every POST is refused. Call it before Run.
func (s *Server) RequireSecret(secret string) { s.secret = secret }

// proven reports whether a request has the secret.
func (h *handler) proven(r *http.Request) bool {
	return h.secret != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(SecretHeader)), []byte(h.secret)) == 1
}
