package inspect

import (
	"context"
	"sync"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Changes has a value after each change of one of the owners or their pods, until ctx ends. Changes that come together are one. stop
// ends the watches, and waits for that. Errors: as of Read.
func Changes(ctx context.Context, s *store.Store, refs []store.Ref, log logr.Logger) (changed <-chan struct{}, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	some := make(chan struct{}, 1)
	var running sync.WaitGroup
	stop = func() {
		cancel()
		running.Wait()
	}
	for _, ref := range refs {
		first, err := s.Get(ctx, ref)
		if err != nil {
			stop()
			return nil, nil, err
		}
		owner, pods := watch.Owner(ctx, s, ref, log), watch.Selected(ctx, s, ref.Namespace, first.Selector, log)
		running.Go(func() {
			merge(ctx, some, owner.Changed(), pods.Changed())
			<-owner.Done()
			<-pods.Done()
		})
	}
	return some, stop, nil
}

// merge passes on that something came, until ctx ends.
func merge(ctx context.Context, to chan<- struct{}, a, b <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a:
		case <-b:
		}
		select {
		case to <- struct{}{}:
		default: // there is one already
		}
	}
}

// Follow reads the owner again after each change of it or its pods, and shows what it has read, until ctx ends. That is no error.
// Many changes change nothing that anybody sees. Errors: as of read, but for temporary ones, which are logged.
func Follow[V any](
	ctx context.Context, s *store.Store, ref store.Ref, log logr.Logger, read func(context.Context, *store.Store, store.Ref) (V, error), show func(V) error,
) error {
	changed, stop, err := Changes(ctx, s, []store.Ref{ref}, log)
	if err != nil {
		return err
	}
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil // a signal ends the command, which is no error
		case <-changed:
		}
		view, err := read(ctx, s, ref)
		if ctx.Err() != nil {
			return nil
		}
		if store.Temporary(err) {
			// Log: only of `get -w`: the API server does not answer.
			log.Info("the slots cannot be read now; they are shown again at the next change", "reason", err.Error())
			continue
		}
		if err != nil {
			return err
		}
		if err := show(view); err != nil {
			return err
		}
	}
}
