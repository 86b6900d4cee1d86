package inspect

import (
	"context"
	"sync"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/watch"
)

// News reports changes of owners and their pods.
type News struct {
	// Changed has a value after each change. Several changes may share one value.
	Changed chan struct{}

	cancel  context.CancelFunc
	running sync.WaitGroup
	denied  []func() error
}

// Watch watches owners and their pods until Close. Errors: as of Read.
func Watch(ctx context.Context, s *store.Store, refs []kinds.Ref, log logr.Logger) (*News, error) {
	ctx, cancel := context.WithCancel(ctx)
	n := &News{Changed: make(chan struct{}, 1), cancel: cancel}
	for _, ref := range refs {
		first, err := s.GetOwner(ctx, ref)
		if err != nil {
			n.Close()
			return nil, err
		}
		owner := watch.Owner(ctx, s, ref, log)
		n.follow(ctx, owner.Changed(), owner.Done(), func() error {
			if d := owner.Denied(); d.Err != nil {
				return request.Forbidden(d.Verb, ref.GVR(), ref.Namespace, ref.Name, d.Err)
			}
			return nil
		})
		for _, selector := range census.Selectors(first) {
			pods := watch.Selected(ctx, s, ref.Namespace, selector, log)
			n.follow(ctx, pods.Changed(), pods.Done(), func() error {
				if d := pods.Denied(); d.Err != nil {
					return request.Forbidden(d.Verb, store.Pods, ref.Namespace, "", d.Err)
				}
				return nil
			})
		}
	}
	return n, nil
}

// follow forwards values from from to Changed, until ctx ends.
func (n *News) follow(ctx context.Context, from, done <-chan struct{}, denied func() error) {
	n.denied = append(n.denied, denied)
	n.running.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-from:
				select {
				case n.Changed <- struct{}{}:
				default: // there is one already
				}
			}
		}
		<-done
	})
}

// Denied returns a *request.ForbiddenError if RBAC does not permit one of the watches.
func (n *News) Denied() error {
	for _, denied := range n.denied {
		if err := denied(); err != nil {
			return err
		}
	}
	return nil
}

// Close stops the watches, and blocks until they have ended.
func (n *News) Close() {
	n.cancel()
	n.running.Wait()
}

// Follow reads the owner again after each change of it or its pods, and calls show with the result. It blocks until ctx ends and then returns nil. The result
// is often unchanged. Errors: as of read and show. Temporary errors of read are only logged.
func Follow[V any](
	ctx context.Context, s *store.Store, ref kinds.Ref, log logr.Logger, read func(context.Context, *store.Store, kinds.Ref) (V, error), show func(V) error,
) error {
	news, err := Watch(ctx, s, []kinds.Ref{ref}, log)
	if err != nil {
		return err
	}
	defer news.Close()
	for {
		select {
		case <-ctx.Done():
			return nil // a signal ends the command, which is no error
		case <-news.Changed:
		}
		if err := news.Denied(); err != nil {
			return err
		}
		view, err := read(ctx, s, ref)
		if ctx.Err() != nil {
			return nil
		}
		if request.Temporary(err) {
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
