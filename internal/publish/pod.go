package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/idalloc/idalloc/pkg/identity"
)

const (
	// podName is the hidden file that tells which pod filled the directory.
	podName = ".pod-uid"
	// lastName is the hidden file that has the id which the workload is about to lose.
	lastName = ".last-id"
)

// Pod returns the UID of the pod that filled the directory, empty if that is not known. A directory may outlive a pod.
func (d *Dir) Pod() string {
	uid, err := os.ReadFile(filepath.Join(d.path, podName))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(uid))
}

// SetPod notes which pod the directory belongs to.
func (d *Dir) SetPod(uid string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(makeDirs(d.path), d.replaceFile(podName, uid+"\n")); err != nil {
		return d.explain(err)
	}
	return nil
}

// Note keeps the id that the workload is about to lose: the files do not show it any more, but a process that starts
// meanwhile has to ask the workload about it. An id that is not assigned is none.
func (d *Dir) Note(id identity.Identity) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.note(id)
	if err != nil {
		return fmt.Errorf("idalloc: the id that is given up cannot be kept: %w", d.explain(err))
	}
	return nil
}

func (d *Dir) note(id identity.Identity) error {
	if !id.Assigned() {
		if err := os.Remove(filepath.Join(d.path, lastName)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return errors.Join(makeDirs(d.path), d.replaceFile(lastName, string(b)+"\n"))
}

// Noted returns what Note kept, which is not assigned if that was none.
func (d *Dir) Noted() (id identity.Identity, err error) {
	b, err := os.ReadFile(filepath.Join(d.path, lastName))
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &id)
	}
	if err != nil {
		return identity.Identity{}, fmt.Errorf("idalloc: which id is being given up is not known: delete the pod: %w", err)
	}
	return id, nil
}
