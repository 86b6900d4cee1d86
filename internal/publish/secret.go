package publish

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

const (
	// SecretName is a file with a secret. A program that shares its node's network proves by it that it belongs to this pod.
	SecretName = "drain-secret"
	// SecretHeader is the header in which the program sends the content of that file.
	SecretHeader = "Idalloc-Drain-Secret" //nolint:gosec // the name of a header, not a secret
)

// Secret returns the secret in the directory. If there is none, it makes one. It stays the same when the process is restarted.
func (d *Dir) Secret() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := filepath.Join(d.path, SecretName)
	b, err := os.ReadFile(path) //nolint:gosec // in the directory that the user named
	if secret := strings.TrimSpace(string(b)); err == nil && len(secret) >= len(rand.Text()) {
		return secret, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", d.explain(err)
	}
	secret := rand.Text()
	// The file is renamed into place, so that nobody reads half of it. All users may read it, because other containers of the
	// pod may run as other users. Processes outside of the pod cannot read the directory.
	if err := errors.Join(makeDirs(d.path), d.replaceFile(SecretName, secret+"\n")); err != nil {
		return "", d.explain(err)
	}
	return secret, nil
}

// replaceFile replaces the file of this name, atomically.
func (d *Dir) replaceFile(name, data string) error {
	tmp := filepath.Join(d.path, swapPrefix+name)
	if err := writeFile(tmp, data); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(d.path, name))
}

// RequireSecret makes each POST demand this secret. It is for a pod that shares its node's loopback interface. It may be
// called while the server runs.
func (s *Server) RequireSecret(secret string) { s.handler.secret.Store(&secret) }

// unproven returns why a request is refused for lack of the secret. It returns an empty reason if the request has the secret, or
// needs none.
func (h *handler) unproven(r *http.Request) string {
	want := h.secret.Load()
	if want == nil || subtle.ConstantTimeCompare([]byte(r.Header.Get(SecretHeader)), []byte(*want)) == 1 {
		return ""
	}
	return "only a container of this pod may say this, and everybody on the node could, because the pod has hostNetwork: " +
		"send the content of the file " + SecretName + " of --dir in the header " + SecretHeader
}
