package publish

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// opened is an open directory. Another container of the pod may put links into it, but nothing outside is ever written, read or removed.
type opened struct{ *os.Root }

func (o opened) publish(names []string, contents []file) error {
	// Create the links first. They dangle until the first swap, so all files appear at once.
	if err := o.link(names); err != nil {
		return err
	}
	// Readlink returns "" for a missing file or one that is no link; no generation has that name. The swap replaces such a file.
	previous, _ := o.Readlink(dataLink)
	if previous != "" && o.shows(previous, contents) {
		return o.prune(previous, "")
	}
	next, err := o.write(contents)
	if err != nil {
		return err
	}
	if err := o.swap(next); err != nil {
		return errors.Join(err, o.RemoveAll(next))
	}
	// The previous generation stays until the next swap: some readers resolved dataLink just before this swap and still open files below it.
	return o.prune(next, previous)
}

// link creates the published names that do not exist yet. They are symbolic links through dataLink.
func (o opened) link(names []string) error {
	for _, name := range names {
		target := path.Join(dataLink, name)
		have, err := o.Readlink(name)
		if err == nil && have == target {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			if _, statErr := o.Lstat(name); statErr == nil {
				return fmt.Errorf("%s exists and is not a link made by idalloc: remove it, or choose another directory with --dir", path.Join(o.Name(), name))
			}
			return err
		}
		if err := o.replaceLink(target, name); err != nil {
			return err
		}
	}
	return nil
}

// write creates a new generation directory and returns its name.
func (o opened) write(contents []file) (string, error) {
	name := generationPrefix + time.Now().UTC().Format("20060102-150405.000000000") + "-" + rand.Text()
	if err := o.Mkdir(name, dirMode); err != nil {
		return "", err
	}
	// Chmod, because the umask limits the mode at creation, and other containers of the pod may run as other users.
	err := o.Chmod(name, dirMode)
	for _, f := range contents {
		if err != nil {
			break
		}
		err = o.writeFile(path.Join(name, f.name), f.data)
	}
	if err != nil {
		return "", errors.Join(err, o.RemoveAll(name))
	}
	return name, nil
}

// swap makes dataLink point to the generation. From this moment readers see it.
func (o opened) swap(generation string) error { return o.replaceLink(generation, dataLink) }

// replaceLink atomically makes name a link to target. It renames a new link over the old one, because a link cannot be created over an existing one.
func (o opened) replaceLink(target, name string) error {
	tmp := swapPrefix + name
	// A process that died between the two steps below left this link.
	if err := o.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := o.Symlink(target, tmp); err != nil {
		return err
	}
	return o.Rename(tmp, name)
}

// replaceFile atomically replaces the file of this name.
func (o opened) replaceFile(name, data string) error {
	tmp := swapPrefix + name
	if err := o.writeFile(tmp, data); err != nil {
		return err
	}
	return o.Rename(tmp, name)
}

// shows reports whether the generation has exactly these files. Without it, a container that restarts with the same identity would wake every reader.
func (o opened) shows(generation string, contents []file) bool {
	if info, err := o.Lstat(generation); err != nil || !info.IsDir() {
		return false
	}
	entries, err := fs.ReadDir(o.FS(), generation)
	if err != nil || len(entries) != len(contents) {
		return false
	}
	for _, f := range contents {
		have, err := o.ReadFile(path.Join(generation, f.name))
		if err != nil || string(have) != f.data {
			return false
		}
	}
	return true
}

// prune removes all generations except the given ones, and the links of processes that died.
func (o opened) prune(keep ...string) error {
	entries, err := fs.ReadDir(o.FS(), ".")
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name := e.Name()
		generation := strings.HasPrefix(name, generationPrefix)
		if !strings.HasPrefix(name, swapPrefix) && (!generation || slices.Contains(keep, name)) {
			continue
		}
		if generation {
			// One rename removes all files at once, so a late reader finds either all of them or none.
			away := swapPrefix + name
			errs = append(errs, o.Rename(name, away))
			name = away
		}
		errs = append(errs, o.RemoveAll(name))
	}
	return errors.Join(errs...)
}

// maxFile is the maximum size of a file to read, in bytes. The longest text of partitions has about 10,000 bytes.
const maxFile = 1 << 20

// ReadFile reads a file that idalloc wrote. Another container of the pod may have replaced it by a FIFO; opening or reading one blocks forever, so ReadFile
// refuses it.
func (o opened) ReadFile(name string) ([]byte, error) {
	f, err := o.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is not a file that idalloc wrote: remove it, or choose another directory with --dir", path.Join(o.Name(), name))
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// writeFile writes a new file with fileMode, independent of the umask. It first removes an existing file, which may be a FIFO and would block.
func (o opened) writeFile(name, data string) error {
	if err := o.remove(name); err != nil {
		return err
	}
	f, err := o.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return o.Chmod(name, fileMode)
}

// remove removes the file of this name, if there is one.
func (o opened) remove(name string) error {
	if err := o.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
