package partition

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr"

	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Run calls work for each partition that this pod owns, in goroutines, one call at a time for each partition.
//
// The context of a call ends when that partition is to move, and context.Cause says why: ErrRevoked, ErrLost, ErrFenced or
// ErrClosing. The calls for other partitions go on. Run waits for the call to return, however long that takes, because the
// partition may go to another pod only after that. If a call returns nil before its context has ended, work is called again for that
// partition only after this pod has lost it and has taken it again.
//
// Run blocks until ctx ends, until a call returns an error of its own, or until there can be no id any more. Then it ends all
// calls, waits for them and releases the slot. It returns the call's error. It returns nil if ctx ended and the calls
// returned nil or the error or the cause of their contexts. If it could not start, or there can be no id any more, it
// returns the error that idcontext.Start or Instance.Wait would return.
func Run(ctx context.Context, o Options, work func(ctx context.Context, p Partition) error) error {
	o.ReleaseTimeout = cmp.Or(o.ReleaseTimeout, 10*time.Second)
	if o.Log.GetSink() == nil {
		o.Log = logr.FromSlogHandler(slog.Default().Handler())
	}
	r := newRunner(ctx, work)
	instance, err := r.start(ctx, o)
	if err != nil {
		return unlessOver(ctx, err)
	}
	err = follow(ctx, instance, r, o.Changed)
	if own := r.close(ctx); own != nil {
		err = own
		instance.Failed()
	} else {
		err = unlessOver(ctx, err)
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.ReleaseTimeout)
	defer cancel()
	if failed := instance.Close(release); failed != nil {
		o.Log.Info("the slot was not released; it comes free when the pod is gone", "reason", failed.Error())
	}
	return err
}

// start starts the instance whose partitions the runner works on.
func (r *runner) start(ctx context.Context, o Options) (*idcontext.Instance, error) {
	o.Partitions = &idcontext.Partitions{Publish: r.publish, Stop: r.stop, HandsOver: true, Strategies: o.Strategies, InProcess: true}
	instance, err := idcontext.Start(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	r.current, r.strict = instance.Current, o.FenceAfter > 0
	close(r.known)
	return instance, nil
}

// follow waits until ctx ends, a call fails, or there can be no id any more. Meanwhile it ends the calls when the process is fenced,
// which the allocator says only later, and tells of each identity.
func follow(ctx context.Context, instance *idcontext.Instance, r *runner, tell func(identity.Identity)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)() //nolint:contextcheck // it ends for a reason of its own, too
	if tell == nil {
		tell = func(identity.Identity) {}
	}
	for {
		now, err := instance.Wait(ctx)
		if err != nil {
			return err
		}
		for tell(now); now.Assigned(); tell(now) {
			select {
			case <-ctx.Done():
				return nil
			case <-instance.Changes():
			}
			now = instance.Current()
		}
		r.withdraw(withdrawn(now.State))
	}
}

// unlessOver returns nil if ctx has ended, because that is how a caller stops Run.
func unlessOver(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}
