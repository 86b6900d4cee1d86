package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/pkg/identity"
)

const (
	// podName is a hidden file with the UID of the pod to which the directory belongs.
	podName = ".pod-uid"
	// lastName is a hidden file with the identity that the program is about to lose. It stays until the program is known to have stopped: a program that was
	// told "lost" may be slow to notice, and the next hand-over must ask about that id.
	lastName = ".last-id"
	// stopName is a hidden file with the number of the last stop. A stop may be cancelled, and the token then stays the same. So only the number distinguishes
	// a late report from the report of a later stop. The file is written before the program can know the number; the next process counts on from it.
	stopName = ".last-stop"
	// pausedName is a hidden file that exists while the pod's work on partitions should be paused.
	pausedName = ".paused"
)

// Pod returns the UID of the pod to which the directory belongs. It is empty if unknown. A directory may outlive its pod.
func (d *Dir) Pod() string {
	uid, err := d.read(podName)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(uid))
}

// SetPod sets the pod to which the directory belongs.
func (d *Dir) SetPod(uid string) error { return d.save(podName, uid+"\n") }

// Note saves the identity that the program is about to lose. The files no longer show it, but a later process must still find out whether the program has
// stopped. If id is not assigned, Note removes the saved identity.
func (d *Dir) Note(id identity.Identity) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.note(id); err != nil {
		// Error: exit code 1: `--dir` cannot be written to.
		// Do: mount a writable `emptyDir` there.
		return d.explain(fmt.Errorf("the withdrawn id cannot be kept: %w", err))
	}
	return nil
}

func (d *Dir) note(id identity.Identity) error {
	if !id.Assigned() {
		return d.change(func(o opened) error { return o.remove(lastName) })
	}
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return d.change(func(o opened) error { return o.replaceFile(lastName, string(b)+"\n") })
}

// Noted returns the identity that Note saved. It is not assigned if none was saved.
func (d *Dir) Noted() (id identity.Identity, err error) {
	if id, _, err = d.identity(lastName); err != nil {
		// Error: exit code 1: `.last-id` in `--dir` is damaged.
		// Do: delete the pod.
		return identity.Identity{}, fmt.Errorf("which id was withdrawn is not known: delete the pod: %w", err)
	}
	return id, nil
}

// LastStop returns the number that SetLastStop saved, or 0. A later process must give its stops higher numbers; otherwise a late report of the program about an
// old stop would count for a new one.
func (d *Dir) LastStop() (int, error) {
	b, err := d.read(stopName)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, d.explain(err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("how many stops there were is not known: delete the pod: %s: %w", filepath.Join(d.path, stopName), err)
	}
	return number, nil
}

// SetLastStop saves the number of a stop before the program can know it.
func (d *Dir) SetLastStop(number int) error { return d.save(stopName, strconv.Itoa(number)+"\n") }

// Paused reports whether the pod's work on partitions should be paused: the last value of SetPaused.
func (d *Dir) Paused() bool {
	_, err := d.read(pausedName)
	return err == nil
}

// SetPaused saves whether the pod's work on partitions should be paused, for the next process of the pod.
func (d *Dir) SetPaused(paused bool) error {
	if paused {
		return d.save(pausedName, "")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.explain(d.change(func(o opened) error { return o.remove(pausedName) }))
}
