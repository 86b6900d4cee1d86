package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
)

// errStillShown keeps a slot whose id could not be withdrawn.
var errStillShown = errors.New("the files in --dir may still show the id")

// readers are the other containers that read the files. Nobody knows whether they act under an id, so they are given time after it left
// the files.
type readers struct {
	delay time.Duration

	mu sync.Mutex
	// none says that no file has shown an id since the last time that one was withdrawn.
	none bool
	// since is when it was.
	since time.Time
}

// told takes in what the files show now. An earlier process may have left them with an id.
func (r *readers) told(id identity.Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !id.Assigned() && !r.none {
		r.since = time.Now()
	}
	r.none = !id.Assigned()
}

// wait blocks until the readers had their time, or ctx ends; then it returns the cause.
func (r *readers) wait(ctx context.Context) error {
	r.mu.Lock()
	left, none := r.delay-time.Since(r.since), r.none
	r.mu.Unlock()
	if !none {
		return errStillShown
	}
	if left > 0 && !sleep(ctx, left) {
		return context.Cause(ctx)
	}
	return nil
}
