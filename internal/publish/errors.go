package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// explain adds advice for the user to a file system error.
func (d *Dir) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		// Error: exit code 1: `--dir` is not writable.
		// Do: mount a writable `emptyDir` there.
		return fmt.Errorf("cannot write to %s: mount an emptyDir volume there that all containers of the pod share, "+
			"or choose a writable directory with --dir: %w", d.path, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		// Error: exit code 1: the `emptyDir` of `--dir` is full.
		// Do: give it a `sizeLimit` of at least 1Mi.
		return fmt.Errorf("no space left in %s: give its emptyDir volume a sizeLimit of at least 1Mi: %w", d.path, err)
	default:
		return fmt.Errorf("publishing to %s: %w", d.path, err)
	}
}
