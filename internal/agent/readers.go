package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// errStillShown means that the pod keeps the slot or the partitions, because they could not be withdrawn from the files.
var errStillShown = errors.New("the files in --dir may still show the id, or the partitions")

// readers are the other containers, which read the files. It is unknown whether they act under an id, so they get some time to notice after an id is withdrawn
// from the files.
type readers struct {
	delay time.Duration

	mu sync.Mutex
	// withdrawn is true if the files show no id. It is false at first, because an earlier process may have left one there.
	withdrawn bool
	// since is the time at which the last id was withdrawn.
	since time.Time
	// owned holds the partitions that the files show.
	owned placement.Set
}

// shown records the identity that the files now show.
func (r *readers) shown(id identity.Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !id.Assigned() && !r.withdrawn {
		r.since = time.Now()
	}
	r.withdrawn, r.owned = !id.Assigned(), id.Partitions.Owned()
}

// mayRead reports whether the files may show an id.
func (r *readers) mayRead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.withdrawn
}

// wait blocks until the readers have had time to notice what must stop. Their time begins when the id was withdrawn, or at since for some partitions. If ctx
// ends earlier, wait returns the cause of ctx.
func (r *readers) wait(ctx context.Context, stop allocator.Stop, since time.Time) error {
	r.mu.Lock()
	shown := stop.All && !r.withdrawn || !stop.All && !r.owned.Intersect(stop.Partitions).Empty()
	if stop.All {
		since = r.since
	}
	r.mu.Unlock()
	if shown {
		return errStillShown
	}
	if left := r.delay - time.Since(since); left > 0 && !sleep(ctx, left) {
		return context.Cause(ctx)
	}
	return nil
}
