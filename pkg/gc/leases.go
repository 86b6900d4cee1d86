package gc

import (
	"context"
	"errors"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// leases deletes the Leases without a holder of slots that the owner no longer has, and returns these slots. A held Lease may protect its pod's work: only
// a pod that observes it for long enough can tell. An account that may not read or delete Leases leaves them.
func leases(ctx context.Context, s *store.Store, ref kinds.Ref, dryRun bool) (ids []int, err error) {
	owner, err := s.GetOwner(ctx, ref)
	if errors.Is(err, request.ErrGone) {
		return nil, nil // its Leases stay, because work under them may continue
	}
	if err != nil {
		return nil, err
	}
	var free []slotlease.Lease
	err = s.EachLease(ctx, ref, func() { free = nil }, func(l slotlease.Lease) {
		if l.ID >= owner.Count && l.Holder == "" {
			free = append(free, l)
		}
	})
	for _, l := range free {
		if err == nil && !dryRun {
			err = s.DeleteLease(ctx, ref, l)
		}
		switch {
		case errors.Is(err, request.ErrConflict):
			err = nil // a pod took it
		case err == nil:
			ids = append(ids, l.ID)
		}
	}
	if errors.As(err, new(*request.ForbiddenError)) {
		err = nil
	}
	slices.Sort(ids)
	return ids, err
}
