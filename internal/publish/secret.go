package publish

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"strings"
)

// SecretName is a file with a secret. With it a program proves that it belongs to this pod.
const SecretName = "drain-secret"

// Secret returns the secret in the directory. If there is none, it creates one. The secret survives restarts of the process.
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
	// The file is renamed into place, so that it is never read half-written. All users may read it, because other containers of the pod may run as other users.
	// Processes outside the pod cannot read the directory.
	if err := d.change(func(o opened) error { return o.replaceFile(SecretName, secret+"\n") }); err != nil {
		return "", d.explain(err)
	}
	return secret, nil
}
