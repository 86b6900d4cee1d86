package context

import (
	"context"
	"errors"

	"github.com/idalloc/idalloc/pkg/identity"
)

var (
	// ErrRevoked is the cause of the end of a function's context when its id is revoked.
	ErrRevoked = errors.New("idalloc: the id was revoked")
	// ErrCountChanged is the cause of its end when the id stays but the count changed.
	ErrCountChanged = errors.New("idalloc: the count changed")
	// ErrFenced is the cause of its end when there was no contact with the API server for
	// Options.FenceAfter (strict mode).
	ErrFenced = errors.New("idalloc: the id was given up: no contact with the API server")
)

// Run calls fn while this pod holds an id, one call at a time. The context of fn ends when the id is
// revoked, given up for lack of contact (strict mode) or, unless Options.KeepOnCountChange, when the count
// changed; context.Cause says which.
// Run then waits for fn to return, without a limit, because the slot may go to another pod only
// after that, and calls it again with the next identity.
//
// Run blocks until ctx ends, fn returns by itself, or there can be no id any more. It gives the slot
// back before it returns. It returns fn's error; nil when fn returned nil, or when ctx ended and fn
// returned nil or the context's error.
func Run(ctx context.Context, o Options, fn func(ctx context.Context, id Identity) error) error {
	i, err := start(ctx, o, (*Instance).stopped)
	if err != nil {
		return ended(ctx, err)
	}
	defer func() {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.options.ReleaseTimeout)
		defer cancel()
		if failed := i.Close(release); failed != nil {
			i.options.Log.Info("the slot was not released; it comes free when the pod is gone", "reason", failed.Error())
		}
	}()
	for {
		id, err := i.Wait(ctx)
		if err != nil || ctx.Err() != nil {
			return ended(ctx, err)
		}
		if !i.begin(id) {
			continue
		}
		i.byItself = true // also if it panics
		revoked, err := i.call(ctx, id, fn)
		i.byItself = !revoked && ctx.Err() == nil
		if err != nil || !revoked || ctx.Err() != nil {
			return err
		}
	}
}

// ended drops an error that only says that ctx ended, which is how Run is told to stop.
func ended(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// call runs fn once. revoked says that its context was ended by a change of identity.
func (i *Instance) call(ctx context.Context, id Identity, fn func(context.Context, Identity) error) (revoked bool, err error) {
	fctx, cancel := context.WithCancelCause(ctx)
	if i.options.FenceAfter > 0 {
		fctx = &strictContext{Context: fctx, fenced: i.alloc.Fenced, cancel: cancel} //nolint:contextcheck // it wraps the one before
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		now, err := i.await(fctx, func(now Identity) bool { return !i.goesOn(id, now) })
		switch {
		case fctx.Err() != nil:
		case err == nil && now.Assigned() && now.ID == id.ID && now.Epoch == id.Epoch:
			cancel(ErrCountChanged)
		case now.State == identity.StateFenced:
			cancel(ErrFenced)
		default:
			cancel(ErrRevoked)
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
	return errors.Is(cause, ErrRevoked) || errors.Is(cause, ErrCountChanged) || errors.Is(cause, ErrFenced), err
}

// strictContext looks at the clock whenever it is asked for its error, so that a function that was
// suspended with its process does not see a context that is still good. Contexts derived from it do not
// ask: they end as soon as this process is scheduled again.
type strictContext struct {
	context.Context //nolint:containedctx // it is one
	fenced          func() bool
	cancel          context.CancelCauseFunc
}

// Err implements context.Context.
func (c *strictContext) Err() error {
	if c.fenced() {
		c.cancel(ErrFenced)
	}
	return c.Context.Err()
}

// goesOn reports whether a function that was called with id may run on at now.
func (i *Instance) goesOn(id, now Identity) bool {
	if i.options.KeepOnCountChange {
		now.Count = id.Count
	}
	return now == id
}

// begin marks the work as running, unless the identity changed since id was read.
func (i *Instance) begin(id Identity) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current != id {
		return false
	}
	i.idle = make(chan struct{})
	return true
}

func (i *Instance) finish() {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.idle)
}

// stopped blocks until fn does not run. The draining identity is in force when it is called, so
// begin lets no new call start.
func (i *Instance) stopped(ctx context.Context) error {
	i.mu.Lock()
	idle := i.idle
	i.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
