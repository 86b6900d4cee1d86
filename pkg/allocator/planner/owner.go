package planner

import (
	"context"
	"errors"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/watch"
)

// ReadOwner reads the owner.
func (p *Planner) ReadOwner(ctx context.Context) error {
	before := p.view.state
	if before == suspected || before == gone {
		if err := p.seek(ctx); err != nil || p.view.state == other {
			return err
		}
	}
	began := p.o.Clock.Now()
	owner, err := p.o.Store.GetOwner(ctx, p.o.Process.State().Owner)
	switch {
	case errors.Is(err, request.ErrGone):
		p.view.state, p.view.late = gone, false
		if before != suspected && before != gone {
			if err := p.seek(ctx); err != nil {
				return err
			}
		}
		p.view.sought = p.o.Clock.Now()
		return nil
	case err != nil:
		return err
	}
	p.o.Contact.Answered()
	p.o.Pace.Read(p.o.Clock.Since(began), p.o.Clock.Since(p.o.Began))
	p.adopt(owner)
	p.view.fresh = true
	return nil
}

// seek finds out whether another object owns the pod now. A pod without a controller was relabelled, and keeps its owner.
func (p *Planner) seek(ctx context.Context) error {
	pod, err := p.o.Process.ReadPod(ctx)
	if err != nil {
		return err
	}
	ref, err := watch.Resolve(ctx, p.o.Store, pod)
	known := err == nil
	if !known && !errors.Is(err, request.ErrGone) && !errors.Is(err, watch.ErrNoController) && !errors.Is(err, watch.ErrUnknownOwner) {
		return err
	}
	leaves := known && ref != p.o.Process.State().Owner
	if leaves {
		if leaves, err = p.follows(ctx, ref); err != nil {
			return err
		}
	}
	switch {
	case leaves:
		p.view.state = other
	case p.view.state != gone:
		p.view.state = unread
	}
	return nil
}

// follows reports whether this pod changes to another owner. If its Role denies access to that owner, the pod keeps what it holds of the deleted owner.
func (p *Planner) follows(ctx context.Context, ref kinds.Ref) (bool, error) {
	if p.view.state != gone {
		return true, nil
	}
	err := p.o.Store.MayFollow(ctx, ref)
	if errors.As(err, new(*request.ForbiddenError)) {
		if p.view.barred != ref {
			p.view.barred = ref
			// Log: the workload was deleted without its pods, and the Role does not permit access to their present controller, such as a ReplicaSet. The
			// pod keeps its id.
			// Do: make the workload again, or permit the new one in the Role; see [the workload is deleted](operations.md#the-workload-is-deleted).
			p.o.Log.Info("the pod has another owner, which its Role does not permit: it stays with the former one", "other", ref.String(), "reason", err.Error())
		}
		return false, nil
	}
	return err == nil, err
}
