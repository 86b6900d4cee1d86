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

// errStillShown means that the slot or the partitions stay with this pod, because they could not be withdrawn from the files.
var errStillShown = errors.New("the files in --dir may still show the id, or the partitions")

// readers stands for the other containers, which read the files. It is not known whether they act under an id. So after an id is
// withdrawn from the files, they get some time to notice.
type readers struct {
	delay time.Duration

	mu sync.Mutex
	// withdrawn says that the files show no id. It is false at first, because an earlier process may have left one there.
	withdrawn bool
	// since is when the last id was withdrawn.
	since time.Time
	// owned are the partitions that the files show.
	owned placement.Set
}

// shown notes the identity that the files show now.
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

// wait blocks until the readers have had their time to notice what is to stop: since the id was withdrawn, or for some partitions since then. If ctx
// ends before that, it returns the cause of ctx.
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
