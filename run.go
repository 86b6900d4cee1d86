package idalloc

import (
	"context"
	"errors"
	"slices"

	"github.com/idalloc/idalloc/internal/fence"
	"github.com/idalloc/idalloc/pkg/allocator"
)

// Run calls fn while this pod holds an id. It makes one call at a time.
//
// Run ends fn's context when the id is revoked or lost, when the process is fenced (strict mode), and, unless Options.KeepOnCountChange is set, when the
// count changes. context.Cause returns ErrRevoked, ErrLost, ErrFenced or ErrCountChanged. Then Run waits for fn to return, without a time limit, because
// the slot may go to another pod only after that. It calls fn again with the next identity.
//
// Run blocks until ctx ends, until fn returns by itself, or until there can be no id any more. It releases the slot before
// it returns. It returns fn's error. It returns nil if ctx ended and fn returned nil or the error or the cause of its
// context. If it could not start, or there can be no id any more, it returns the error that Start or Instance.Wait would
// return.
func Run(ctx context.Context, o Options, fn func(ctx context.Context, id Identity) error) error {
	i, err := start(ctx, o, inOneCall)
	if err != nil {
		return ended(ctx, err)
	}
	defer i.release(ctx)
	for {
		id, err := i.Wait(ctx)
		if err != nil || ctx.Err() != nil {
			return ended(ctx, err)
		}
		if !i.begin(id) {
			continue
		}
		i.endsByItself(true) // even if fn panics
		revoked, err := i.call(ctx, id, fn)
		i.endsByItself(!revoked && ctx.Err() == nil)
		if err != nil || !revoked || ctx.Err() != nil {
			return err
		}
	}
}

// inOneCall is the manner of Run: work ends with its function.
var inOneCall = manner{handsOver: true, inProcess: true, stop: (*Instance).stopped} //nolint:gochecknoglobals // a constant that Go cannot express

// release closes the instance when Run or RunPartitions ends, whether or not ctx has ended.
func (i *Instance) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.options.ReleaseTimeout)
	defer cancel()
	if failed := i.Close(ctx); failed != nil {
		i.options.Log.Info("the slot was not released; it comes free when the pod is gone", "reason", failed.Error())
	}
}

// ended returns nil if ctx has ended, because that is how a caller stops Run.
func ended(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// call calls fn once. revoked is true if a change of the identity has ended fn's context.
func (i *Instance) call(ctx context.Context, id Identity, fn func(context.Context, Identity) error) (revoked bool, err error) {
	fctx, cancel := context.WithCancelCause(ctx)
	check := func(now Identity) {
		switch {
		case i.continues(id, now):
		case now.Assigned() && now.ID == id.ID && now.Token == id.Token:
			cancel(ErrCountChanged)
		default:
			cancel(withdrawn(now.State))
		}
	}
	if i.options.FenceAfter > 0 {
		fctx = fence.Context{Context: fctx, Check: func() { check(i.Current()) }} //nolint:contextcheck // it wraps the one before
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		now, err := i.await(fctx, func(now Identity) bool { return !i.continues(id, now) })
		if fctx.Err() == nil {
			check(now)
		}
		if err != nil { // the loop has ended
			cancel(withdrawn(now.State))
		}
	}()
	defer func() {
		cancel(context.Canceled)
		<-watched
		i.finish()
	}()
	err = fn(fctx, id)
	cause := context.Cause(fctx)
	if cause != nil && (errors.Is(err, cause) || errors.Is(err, fctx.Err())) {
		err = nil
	}
	changes := []error{ErrRevoked, ErrLost, ErrFenced, ErrCountChanged}
	return slices.ContainsFunc(changes, func(change error) bool { return errors.Is(cause, change) }), err
}

// continues reports whether a function that was called with id may continue under the identity now.
func (i *Instance) continues(id, now Identity) bool {
	if i.options.KeepOnCountChange {
		now.Count = id.Count
	}
	return now == id
}

// begin marks the work as running, unless the identity is no longer id.
func (i *Instance) begin(id Identity) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current != id {
		return false
	}
	i.workStopped = make(chan struct{})
	return true
}

func (i *Instance) finish() {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.workStopped)
}

// stopped blocks until fn does not run. The loop calls it after it has published a draining identity, so begin does not let a
// new call start.
func (i *Instance) stopped(ctx context.Context, _ allocator.Stop) error {
	i.mu.Lock()
	workStopped := i.workStopped
	i.mu.Unlock()
	select {
	case <-workStopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
