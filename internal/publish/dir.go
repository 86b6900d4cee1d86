package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/idalloc/idalloc/pkg/identity"
)

const (
	// dataLink is a symbolic link to the current generation. The published names are symbolic links through it, so one rename of dataLink changes all files at
	// once.
	dataLink = "..data"
	// generationPrefix is the prefix of the directories to which dataLink points. It begins with two dots, so that "ls" and globs in the program do not show
	// them.
	generationPrefix = "..gen-"
	// swapPrefix is the prefix of links that are about to be renamed into place.
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

// Current reads the published identity, which this process or an earlier one wrote. It returns false and no error if nothing is published yet.
func (d *Dir) Current() (id identity.Identity, there bool, err error) {
	if id, there, err = d.identity(identity.FileName); err != nil {
		return identity.Identity{}, false, fmt.Errorf("%s in %s cannot be read: remove it, or choose another directory with --dir: %w", identity.FileName, d.path, err)
	}
	return id, there, nil
}

// read reads a file of the directory.
func (d *Dir) read(name string) ([]byte, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return opened{root}.ReadFile(name)
}

// change creates the directory if it is missing, and calls f with it.
func (d *Dir) change(f func(opened) error) error {
	if err := makeDirs(d.path); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return f(opened{root})
}

// save replaces a hidden file of the directory, or one for the program.
func (d *Dir) save(name, data string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.explain(d.change(func(o opened) error { return o.replaceFile(name, data) }))
}

// identity reads an identity from a file. It returns false and no error if there is none.
func (d *Dir) identity(name string) (id identity.Identity, there bool, err error) {
	b, err := d.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return id, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &id)
	}
	return id, err == nil, err
}

// Publish makes all files show id, in one atomic step. If they already show it, nothing is written. After an error the files show either the earlier identity
// or id; the caller may call Publish again.
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
	if err := d.change(func(o opened) error { return o.publish(names(id), contents) }); err != nil {
		return d.explain(err)
	}
	d.last, d.known = id, true
	return nil
}

// makeDirs is like os.MkdirAll, but new directories get dirMode, independent of the umask. It does not change the mode of existing directories.
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
