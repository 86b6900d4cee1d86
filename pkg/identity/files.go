package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// DefaultDir is the default directory in which the idalloc containers publish the files.
	DefaultDir = "/var/run/idalloc"
	// FileName is the name of the file with a whole identity. Read reads it.
	FileName = "identity.json"
	// PollInterval is the time between two checks of Follow, so a change is noticed at most this much later. A check without news costs one readlink.
	PollInterval = 20 * time.Millisecond

	// swapLink is a link that is replaced at every change of the files, and only then.
	swapLink = "..data"
)

// Read returns the identity that an idalloc container has published in dir. It does not wait. Id, count and token belong to
// the same moment. The error wraps fs.ErrNotExist if nothing is published. It is another error if the file cannot be read,
// or has no valid identity.
func Read(dir string) (Identity, error) {
	path := filepath.Join(dir, FileName)
	b, err := os.ReadFile(path) //nolint:gosec // the caller names the directory
	if errors.Is(err, fs.ErrNotExist) {
		// The file may have been replaced twice while the kernel walked the path. A second try finds the newer file.
		b, err = os.ReadFile(path) //nolint:gosec // as above
	}
	if err != nil {
		return Identity{}, fmt.Errorf("no identity is published in %s: is the volume of the idalloc container mounted there? %w", dir, err)
	}
	var id Identity
	if err := json.Unmarshal(b, &id); err != nil {
		return Identity{}, fmt.Errorf("%s: %w", path, err)
	}
	return id, nil
}

// Follow calls fn with the identity that is published in dir, and again after each change. If nothing is published yet, it waits. It blocks until ctx ends,
// and then returns the cause of ctx. If the files become unreadable, it returns that error. Stop the work then, because the last identity that fn got is no
// longer safe to use.
//
// fn runs on the goroutine that called Follow, and Follow notices no change meanwhile. If there were several changes, fn gets only the newest. So fn must
// start the work on another goroutine, and stop it at the next call.
func Follow(ctx context.Context, dir string, fn func(Identity)) error {
	tick := time.Tick(PollInterval)
	f := follower{dir: dir}
	for {
		if err := f.poll(fn); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick:
		}
	}
}

type follower struct {
	dir  string
	last Identity
	// seen: an identity was read.
	seen bool
	// generation is the target of swapLink before last was read.
	generation string
}

// poll checks for a change once.
func (f *follower) poll(fn func(Identity)) error {
	// The link is read before the file. If the files are replaced in between, the next check reads the file again.
	generation, linkErr := os.Readlink(filepath.Join(f.dir, swapLink))
	if linkErr == nil && generation == f.generation {
		return nil
	}
	id, err := Read(f.dir)
	if err != nil {
		if !f.seen && errors.Is(linkErr, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	changed := id != f.last // never equal at first: the zero Identity is not valid, so it is never read
	f.last, f.seen, f.generation = id, true, generation
	if changed {
		fn(id)
	}
	return nil
}
