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
	// dataLink is a symbolic link to the current generation. The published names are symbolic links through it, so one rename
	// of dataLink changes all files.
	dataLink = "..data"
	// generationPrefix begins the names of the directories that dataLink points to. It begins with two dots, so that "ls"
	// and globs in the program do not show them.
	generationPrefix = "..gen-"
	// swapPrefix begins the names of links that are about to be renamed into place.
	swapPrefix = "..swap-"

	dirMode  fs.FileMode = 0o755
	fileMode fs.FileMode = 0o644
)

// Dir publishes identities as files in one directory. It is safe for concurrent use in one process. Two processes must not
// publish into the same directory at the same time.
type Dir struct {
	path string

	mu sync.Mutex
	// last is the identity on disk. It is valid only if known is set.
	last  identity.Identity
	known bool
}

// New returns a Dir that publishes into path. It does not touch the directory before the first write.
func New(path string) *Dir { return &Dir{path: path} }

// Path returns the directory that New was given.
func (d *Dir) Path() string { return d.path }

// Current reads the published identity, which this process or an earlier one has written. It returns false and no error if
// nothing is published yet.
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

// Publish makes all files show id, in one atomic step. If they show it already, it writes nothing. After an error the files
// show either the earlier identity or id, and the caller may call Publish again.
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
	if err := d.publish(names(id), contents); err != nil {
		return d.explain(err)
	}
	d.last, d.known = id, true
	return nil
}

func (d *Dir) publish(names []string, contents []file) error {
	if err := makeDirs(d.path); err != nil {
		return err
	}
	// The links come first. They dangle until the first swap, so all files appear at once.
	if err := d.link(names); err != nil {
		return err
	}
	// Readlink returns "" for what is missing or no link, and no generation has that name. The swap replaces a file.
	previous, _ := os.Readlink(filepath.Join(d.path, dataLink))
	if previous != "" && d.shows(previous, contents) {
		return d.prune(previous, "")
	}
	next, err := d.write(contents)
	if err != nil {
		return err
	}
	if err := d.swap(next); err != nil {
		return errors.Join(err, os.RemoveAll(filepath.Join(d.path, next)))
	}
	// The previous generation stays until the next swap. Some readers have resolved dataLink just before this swap, and still
	// open files below it.
	return d.prune(next, previous)
}

// link makes the published names, if they do not exist yet. They are symbolic links through dataLink.
func (d *Dir) link(names []string) error {
	for _, name := range names {
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
	// Chmod, because the umask reduces the mode at creation, and other containers of the pod may run as other users.
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

// swap makes dataLink point to the generation. At this moment readers see it.
func (d *Dir) swap(generation string) error { return d.replaceLink(generation, dataLink) }

// replaceLink makes name a link to target, atomically. It renames a new link over the old one, because a link cannot be created
// over an existing one.
func (d *Dir) replaceLink(target, name string) error {
	tmp := filepath.Join(d.path, swapPrefix+name)
	// A process that died between the two steps below has left this link.
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(d.path, name))
}

// shows reports whether the generation has exactly these files. It prevents that a container which is restarted with the same
// identity wakes every reader.
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

// prune removes all generations except the given ones, and the links that a process left when it died.
func (d *Dir) prune(keep ...string) error {
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
			// One rename removes all files at once, so a late reader finds either all of them or none.
			away := swapPrefix + name
			errs = append(errs, os.Rename(filepath.Join(d.path, name), filepath.Join(d.path, away)))
			name = away
		}
		errs = append(errs, os.RemoveAll(filepath.Join(d.path, name)))
	}
	return errors.Join(errs...)
}

// writeFile writes a file with fileMode, whatever the umask is.
func writeFile(path, data string) error {
	if err := os.WriteFile(path, []byte(data), fileMode); err != nil {
		return err
	}
	return os.Chmod(path, fileMode)
}

// makeDirs is like os.MkdirAll, but new directories get dirMode, whatever the umask is. It does not change the mode of existing
// directories.
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
