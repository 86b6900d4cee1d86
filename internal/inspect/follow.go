package inspect

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Follow reads the owner again after each change of it or its pods, and shows what it has read, until ctx ends. That is no error.
// Many changes change nothing that anybody sees. Errors: as of read, but for temporary ones, which are logged.
func Follow[V any](
	ctx context.Context, s *store.Store, ref store.Ref, log logr.Logger, read func(context.Context, *store.Store, store.Ref) (V, error), show func(V) error,
) error {
	first, err := s.Get(ctx, ref)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	owner := watch.Owner(ctx, s, ref, log)
	pods := watch.Selected(ctx, s, ref.Namespace, first.Selector, log)
	defer func() {
		cancel()
		<-owner.Done()
		<-pods.Done()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil // a signal ends the command, which is no error
		case <-owner.Changed():
		case <-pods.Changed():
		}
		view, err := read(ctx, s, ref)
		if ctx.Err() != nil {
			return nil
		}
		if store.Temporary(err) {
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
