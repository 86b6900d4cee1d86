package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
)

const (
	// dataLink is the one name that is ever replaced. The published names are symbolic links through
	// it, so a single rename changes all of them.
	dataLink = "..data"
	// generationPrefix starts the names of the directories that dataLink points at. Like dataLink it
	// begins with two dots, so that "ls" and globs in the workload do not show it.
	generationPrefix = "..gen-"
	// swapPrefix starts the names of links that are about to be renamed into place.
	swapPrefix = "..swap-"

	dirMode  fs.FileMode = 0o755
	fileMode fs.FileMode = 0o644
)

// Dir publishes identities as files in one directory. It is safe for concurrent use by one process;
// two processes must not publish into the same directory at the same time.
type Dir struct {
	path string

	mu sync.Mutex
	// last is what is on disk now; it is meaningful only while known is set.
	last  identity.Identity
	known bool
}

// New returns a Dir that publishes into path. Nothing is touched before the first Publish.
func New(path string) *Dir { return &Dir{path: path} }

// Path returns the directory that New was given.
func (d *Dir) Path() string { return d.path }

// Current reads what is published, by this process or by one before it. It is false, without an
// error, when nothing was published yet.
func (d *Dir) Current() (identity.Identity, bool, error) {
	id, err := identity.Read(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return identity.Identity{}, false, nil
	}
	if err != nil {
		return identity.Identity{}, false, err
	}
	return id, true, nil
}

// Publish makes all files say id in one atomic step. It writes nothing when they say so already.
// After an error the files show the identity before or this one, and calling it again is safe.
func (d *Dir) Publish(id identity.Identity) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known && d.last == id {
		return nil
	}
	contents, err := render(id)
	if err != nil {
		return err
	}
	if err := d.publish(contents); err != nil {
		return d.explain(err)
	}
	d.last, d.known = id, true
	return nil
}

func (d *Dir) publish(contents []file) error {
	if err := makeDirs(d.path); err != nil {
		return err
	}
	// The links come first: they dangle until the first swap, so the files appear all at once.
	if err := d.link(); err != nil {
		return err
	}
	// A missing link reads as "", which is no generation.
	previous, err := os.Readlink(filepath.Join(d.path, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if previous != "" && d.shows(previous, contents) {
		return d.sweep(previous, "")
	}
	next, err := d.write(contents)
	if err != nil {
		return err
	}
	if err := d.swap(next); err != nil {
		return errors.Join(err, os.RemoveAll(filepath.Join(d.path, next)))
	}
	// The generation before stays until the next swap, for readers that resolved dataLink just
	// before this one and still want to open the other files.
	return d.sweep(next, previous)
}

// link makes the published names, once: symbolic links into dataLink.
func (d *Dir) link() error {
	for _, name := range names() {
		path, target := filepath.Join(d.path, name), filepath.Join(dataLink, name)
		have, err := os.Readlink(path)
		if err == nil && have == target {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			if _, statErr := os.Lstat(path); statErr == nil {
				return fmt.Errorf("%s exists and is not a link made by idalloc: remove it, or choose another directory with --dir", path)
			}
			return err
		}
		if err := d.replaceLink(target, name); err != nil {
			return err
		}
	}
	return nil
}

// write makes a new generation directory and returns its name.
func (d *Dir) write(contents []file) (string, error) {
	stamp := time.Now().UTC().Format("20060102-150405.000000000")
	path, err := os.MkdirTemp(d.path, generationPrefix+stamp+"-")
	if err != nil {
		return "", err
	}
	// Chmod, because the umask is taken off the mode at creation, and other containers of the pod
	// may run as other users.
	err = os.Chmod(path, dirMode)
	for _, f := range contents {
		if err != nil {
			break
		}
		err = writeFile(filepath.Join(path, f.name), f.data)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(path))
	}
	return filepath.Base(path), nil
}

// swap points dataLink at the generation; this is the moment at which readers see it.
func (d *Dir) swap(generation string) error { return d.replaceLink(generation, dataLink) }

// replaceLink makes name a link to target, atomically. A rename replaces the old link; a link cannot
// be created over one that exists.
func (d *Dir) replaceLink(target, name string) error {
	tmp := filepath.Join(d.path, swapPrefix+name)
	// Left over when a process died between the two steps below.
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(d.path, name))
}

// shows reports whether the generation holds exactly these files. It is asked once after a restart,
// so that a container that comes back with the same identity does not wake every reader.
func (d *Dir) shows(generation string, contents []file) bool {
	entries, err := os.ReadDir(filepath.Join(d.path, generation))
	if err != nil || len(entries) != len(contents) {
		return false
	}
	for _, f := range contents {
		have, err := os.ReadFile(filepath.Join(d.path, generation, f.name)) //nolint:gosec // in the directory that the user named
		if err != nil || string(have) != f.data {
			return false
		}
	}
	return true
}

// sweep removes all generations but the given ones, and the links that a crashed process left.
func (d *Dir) sweep(keep ...string) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name := e.Name()
		stale := strings.HasPrefix(name, swapPrefix)
		if strings.HasPrefix(name, generationPrefix) {
			stale = true
			for _, k := range keep {
				stale = stale && name != k
			}
		}
		if !stale {
			continue
		}
		if strings.HasPrefix(name, generationPrefix) {
			// In one step, so that a reader who comes too late misses all of its files, not some.
			away := swapPrefix + name
			if err := os.Rename(filepath.Join(d.path, name), filepath.Join(d.path, away)); err != nil {
				errs = append(errs, err)
				continue
			}
			name = away
		}
		errs = append(errs, os.RemoveAll(filepath.Join(d.path, name)))
	}
	return errors.Join(errs...)
}

// writeFile creates path with fileMode whatever the umask is.
func writeFile(path, data string) error {
	if err := os.WriteFile(path, []byte(data), fileMode); err != nil {
		return err
	}
	return os.Chmod(path, fileMode)
}

// makeDirs is os.MkdirAll, but what it creates has dirMode whatever the umask is. The mode of what
// exists is the user's business.
func makeDirs(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is not a directory: choose another one with --dir", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if parent := filepath.Dir(path); parent != path {
		if err := makeDirs(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(path, dirMode)
}
