package publish

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io/fs"
	"net/http"
	"strings"
)

const (
	// SecretName is a file with a secret. By it a program proves that it belongs to this pod.
	SecretName = "drain-secret"
	// SecretHeader is the header in which the program sends the content of that file.
	SecretHeader = "Idalloc-Drain-Secret" //nolint:gosec // the name of a header, not a secret
)

// Secret returns the secret in the directory. If there is none, it makes one. It stays the same when the process is restarted.
func (d *Dir) Secret() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := d.read(SecretName)
	if secret := strings.TrimSpace(string(b)); err == nil && len(secret) >= len(rand.Text()) {
		return secret, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", d.explain(err)
	}
	secret := rand.Text()
	// The file is renamed into place, so that nobody reads half of it. All users may read it, because other containers of the
	// pod may run as other users. Processes outside of the pod cannot read the directory.
	if err := d.change(func(o opened) error { return o.replaceFile(SecretName, secret+"\n") }); err != nil {
		return "", d.explain(err)
	}
	return secret, nil
}

// RequireSecret sets the secret that each POST has to have. Without one, each is refused. Call it before Run.
func (s *Server) RequireSecret(secret string) { s.handler.secret = secret }

// proven reports whether a request has the secret.
func (h *handler) proven(r *http.Request) bool {
	return h.secret != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(SecretHeader)), []byte(h.secret)) == 1
}
