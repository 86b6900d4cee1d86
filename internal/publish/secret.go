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
	// SecretName is the file by which a workload that shares its node's network proves that it is of this pod.
	SecretName = "drain-secret"
	// SecretHeader carries the content of that file.
	SecretHeader = "Idalloc-Drain-Secret" //nolint:gosec // the name of a header, not what it carries
)

// Secret returns the secret that lies in the directory. It makes one when there is none; a process that restarts finds
// that of the process before it.
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
	// A swap, so that nobody reads half of it. Other containers of the pod may run as other users; who cannot
	// read the directory is kept out by that.
	if err := errors.Join(makeDirs(d.path), d.replaceFile(SecretName, secret+"\n")); err != nil {
		return "", d.explain(err)
	}
	return secret, nil
}

// replaceFile makes name a file with this content, atomically.
func (d *Dir) replaceFile(name, data string) error {
	tmp := filepath.Join(d.path, swapPrefix+name)
	if err := writeFile(tmp, data); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(d.path, name))
}

// RequireSecret makes POST /v1/drained ask for the secret of the pod's directory. It is for a pod whose loopback interface is
// its node's. It may be called while the server runs.
func (s *Server) RequireSecret(secret string) { s.handler.secret.Store(&secret) }

// unproven says why a request does not show the secret that is asked for, empty if it does or none is.
func (h *handler) unproven(r *http.Request) string {
	want := h.secret.Load()
	if want == nil || subtle.ConstantTimeCompare([]byte(r.Header.Get(SecretHeader)), []byte(*want)) == 1 {
		return ""
	}
	return "only a container of this pod may say this, and everybody on the node could, because the pod has hostNetwork: " +
		"send the content of the file " + SecretName + " of --dir in the header " + SecretHeader
}
