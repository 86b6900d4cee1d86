package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
)

// errStillShown means that the slot stays with this pod, because its id could not be withdrawn from the files.
var errStillShown = errors.New("the files in --dir may still show the id")

// readers stands for the other containers, which read the files. Nobody knows whether they act under an id. So after an id is
// withdrawn from the files, they get some time to notice.
type readers struct {
	delay time.Duration

	mu sync.Mutex
	// withdrawn says that the files show no id. It is false at first, because an earlier process may have left one there.
	withdrawn bool
	// since is when the last id was withdrawn.
	since time.Time
}

// shown notes the identity that the files show now.
func (r *readers) shown(id identity.Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !id.Assigned() && !r.withdrawn {
		r.since = time.Now()
	}
	r.withdrawn = !id.Assigned()
}

// mayRead reports whether the files may show an id.
func (r *readers) mayRead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.withdrawn
}

// wait blocks until the readers have had their time. If ctx ends before that, it returns the cause of ctx.
func (r *readers) wait(ctx context.Context) error {
	r.mu.Lock()
	left, withdrawn := r.delay-time.Since(r.since), r.withdrawn
	r.mu.Unlock()
	if !withdrawn {
		return errStillShown
	}
	if left > 0 && !sleep(ctx, left) {
		return context.Cause(ctx)
	}
	return nil
}

// waitSince blocks until the readers have had their time since then. If ctx ends before that, it returns the cause of ctx.
func (r *readers) waitSince(ctx context.Context, since time.Time) error {
	if left := r.delay - time.Since(since); left > 0 && !sleep(ctx, left) {
		return context.Cause(ctx)
	}
	return nil
}
