package idalloc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/idalloc/idalloc/internal/fence"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// runner keeps one call running for each partition on which work may continue.
type runner struct {
	work func(context.Context, Partition) error
	// ctx is the parent of each call's context. It ends when a call has returned an error of its own, or with close.
	ctx    context.Context //nolint:containedctx // see above
	endAll context.CancelCauseFunc
	// current returns the present identity. If strict is true (strict mode), it compares the deadline with the clock. Both are set before known is
	// closed.
	current func() Identity
	strict  bool
	known   chan struct{}

	mu sync.Mutex
	// may are the partitions on which work may continue, by number.
	may map[int]Partition
	// calls are the calls under way, by number. returned is closed and replaced when a call returns.
	calls    map[int]*call
	returned chan struct{}
	// finished are the partitions of may whose work is done.
	finished map[int]bool
	// err is the first error of a call that ended by itself.
	err    error
	closed bool
}

// call is one call of the work.
type call struct{ cancel context.CancelCauseFunc }

func newRunner(ctx context.Context, work func(context.Context, Partition) error) *runner {
	r := &runner{work: work, known: make(chan struct{}), calls: map[int]*call{}, returned: make(chan struct{}), finished: map[int]bool{}}
	r.ctx, r.endAll = context.WithCancelCause(context.WithoutCancel(ctx))
	return r
}

// publish updates the partitions on which this process may work. When it returns, the contexts of all other calls have ended.
func (r *runner) publish(now Identity) {
	<-r.known
	r.mu.Lock()
	defer r.mu.Unlock()
	r.may = map[int]Partition{}
	for _, p := range owned(now) {
		r.may[p.Number] = p
	}
	for number, call := range r.calls {
		if _, continues := r.may[number]; !continues {
			call.cancel(reason(now, number))
		}
	}
	for number := range r.finished {
		if _, continues := r.may[number]; !continues {
			delete(r.finished, number)
		}
	}
	for number := range r.may {
		r.begin(number)
	}
}

// reason returns why work on a partition must stop.
func reason(now Identity, number int) error {
	switch {
	case !now.Assigned():
		return withdrawn(now.State)
	case now.Partitions.Stopping().Contains(number):
		return ErrRevoked
	default:
		return ErrLost
	}
}

// begin calls the work for a partition, if it should be called. The caller must hold the lock.
func (r *runner) begin(number int) {
	p, may := r.may[number]
	if !may || r.calls[number] != nil || r.finished[number] || r.closed || !r.current().Assigned() {
		return
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	this := &call{cancel: cancel}
	r.calls[number] = this
	if r.strict {
		ctx = fence.Context{Context: ctx, Check: func() {
			if r.current().State == identity.StateFenced {
				cancel(ErrFenced)
			}
		}}
	}
	go func() {
		err := fmt.Errorf("idalloc: the function for partition %d ended its goroutine: return an error in place of runtime.Goexit, which t.FailNow calls, too", number)
		defer func() { r.end(ctx, number, this, err) }() // however it ends
		err = r.work(ctx, p)
	}()
}

// end records that a call with this context has returned.
func (r *runner) end(ctx context.Context, number int, this *call, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cause := context.Cause(ctx) // nil if it has not ended; it does not end while the lock is held, so finished work is not revoked
	this.cancel(nil)
	switch {
	case err != nil && (cause == nil || (!errors.Is(err, cause) && !errors.Is(err, context.Canceled))):
		r.err = cmp.Or(r.err, err)
		r.closed = true
		r.endAll(ErrClosing)
	case cause == nil:
		r.finished[number] = true
	}
	delete(r.calls, number)
	close(r.returned)
	r.returned = make(chan struct{})
	r.begin(number) //nolint:contextcheck // the partition may be this process's again, with a context of its own
}

// withdraw ends the contexts of all calls.
func (r *runner) withdraw(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, call := range r.calls {
		call.cancel(cause)
	}
}

// close ends all calls and waits for them, even if ctx has ended. It returns the error of a call that ended by itself.
func (r *runner) close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.endAll(ErrClosing)
	_ = r.stop(context.WithoutCancel(ctx), allocator.Stop{All: true}) // its context never ends
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// stop blocks until no call runs for the partitions to stop, and reports each partition when no call runs for it. The contexts of these calls have ended.
func (r *runner) stop(ctx context.Context, stop allocator.Stop) error {
	left := stop.Partitions
	for {
		running, returned := r.running(stop.All, left)
		if ended := left.Minus(running); !ended.Empty() {
			stop.Stopped(ended)
			left = left.Minus(ended)
		}
		if running.Empty() {
			return nil
		}
		select {
		case <-returned:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// running returns the partitions, of these or of all, for which calls run, and a channel that is closed when a call returns.
func (r *runner) running(all bool, of placement.Set) (set placement.Set, returned <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	numbers := make([]int, 0, len(r.calls))
	for number := range r.calls {
		if all || of.Contains(number) {
			numbers = append(numbers, number)
		}
	}
	return placement.Of(numbers...), r.returned
}
