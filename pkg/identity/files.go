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
	// DefaultDir is where the idalloc containers publish the files unless told otherwise.
	DefaultDir = "/var/run/idalloc"
	// FileName is the file in that directory that holds a whole identity, and the one that Read reads.
	FileName = "identity.json"
	// PollInterval is how often Follow looks. A change is noticed at most this much later. A look
	// that finds nothing new costs one readlink.
	PollInterval = 20 * time.Millisecond

	// swapLink is replaced at every change of the files, and only then.
	swapLink = "..data"
)

// Read returns the identity that an idalloc container published in dir. It is one moment of the
// instance: id, count and epoch belong together. The error is fs.ErrNotExist (errors.Is) when
// nothing was published yet.
func Read(dir string) (Identity, error) {
	path := filepath.Join(dir, FileName)
	b, err := os.ReadFile(path) //nolint:gosec // the caller names the directory
	if errors.Is(err, fs.ErrNotExist) {
		// Two swaps while the kernel walked the path: what it was about to open is gone, the next one is there.
		b, err = os.ReadFile(path) //nolint:gosec // as above
	}
	if err != nil {
		return Identity{}, fmt.Errorf("idalloc: no identity is published in %s: is the volume of the idalloc container mounted there? %w", dir, err)
	}
	var id Identity
	if err := json.Unmarshal(b, &id); err != nil {
		return Identity{}, fmt.Errorf("%s: %w", path, err)
	}
	return id, nil
}

// Follow calls fn with the identity that is published in dir, and again whenever it changed, until
// ctx ends; it returns the cause then. It waits when nothing is published yet. When the files can
// no longer be read, it returns that error: the identity that fn saw last is not safe to use any more.
//
// fn runs on the goroutine that called Follow. While it runs, changes are not noticed; of several
// that came in meanwhile it is called with the newest only. It must therefore hand the work to
// another goroutine if it has to stop when the id is revoked.
func Follow(ctx context.Context, dir string, fn func(Identity)) error {
	ticker := time.NewTicker(PollInterval)
	defer ticker.Stop()
	f := follower{dir: dir}
	for {
		if err := f.look(fn); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

type follower struct {
	dir  string
	last Identity
	// seen is set once fn was called. generation is where swapLink pointed at before the read of last.
	seen       bool
	generation string
}

func (f *follower) look(fn func(Identity)) error {
	// The link is read before the file: if a swap comes in between, the next look reads once more.
	generation, linkErr := os.Readlink(filepath.Join(f.dir, swapLink))
	if f.seen && linkErr == nil && generation == f.generation {
		return nil
	}
	id, err := Read(f.dir)
	if err != nil {
		if !f.seen && errors.Is(linkErr, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	changed := !f.seen || id != f.last
	f.last, f.seen, f.generation = id, true, generation
	if changed {
		fn(id)
	}
	return nil
}
