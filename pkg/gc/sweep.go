package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Result says what a sweep found and did.
type Result struct {
	// Victims are the dead holders, sorted by id.
	Victims []Victim
	// Restored says that the map was not clean, and that the sweep restores it from the live pods' receipts.
	Restored bool
	// Wrote says that the sweep changed the owner. It is false after a dry run.
	Wrote bool
}

// Sweep frees the slots of dead holders. It gives a slot only to a pod that has asked for just that one: the pods give out the
// others, because they know their own revision. With dryRun it writes nothing.
//
// Sweep blocks until it is done. After a conflict, and after a write without an answer, it tries again until the steps of
// backoff are used up or ctx ends. Errors: those of store.Store's Get and Commit, and those of Survey.
func Sweep(ctx context.Context, s *store.Store, ref store.Ref, backoff wait.Backoff, dryRun bool) (Result, error) {
	var lost Result // the result of a write without an answer
	for {
		result, err := sweepOnce(ctx, s, ref, dryRun)
		if err == nil {
			if !result.Wrote && lost.Wrote {
				return lost, nil // that write has happened
			}
			return result, nil
		}
		ambiguous := errors.Is(err, store.ErrAmbiguous)
		if (!ambiguous && !errors.Is(err, store.ErrConflict)) || backoff.Steps == 0 {
			return Result{}, err
		}
		if ambiguous {
			lost = result
		}
		t := s.Clock.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			t.Stop()
			return Result{}, fmt.Errorf("%w: the last try: %w", context.Cause(ctx), err)
		case <-t.C():
		}
	}
}

func sweepOnce(ctx context.Context, s *store.Store, ref store.Ref, dryRun bool) (Result, error) {
	owner, err := s.Get(ctx, ref)
	if err != nil {
		return Result{}, err
	}
	if err := owner.Unreadable(); err != nil {
		return Result{}, err
	}
	census, err := Survey(ctx, s, owner)
	if err != nil {
		return Result{}, err
	}
	if owner.Trust == assignment.Absent && !slices.ContainsFunc(census.Live, holdsReceipt) {
		return Result{}, nil // this owner never had an assignment
	}
	decision := plan.Plan(plan.Input{
		Count: owner.Count, State: owner.Record.State, Trust: owner.Trust,
		FenceOurs: owner.FenceOurs, Pods: census.Live, Ended: census.Ended(), Room: owner.Room(), Now: s.Clock.Now(),
	})
	result := Result{Victims: census.Dead, Restored: !owner.Clean()}
	switch {
	case decision.Next == nil && decision.TooLarge != nil && !dryRun:
		return Result{}, decision.TooLarge
	case decision.Next != nil && owner.Trust == assignment.Untracked && decision.Next.SameContent(owner.Record.State):
		return Result{}, nil // nobody is dead, and a write would change nothing and could not make the map clean
	case decision.Next == nil || dryRun:
		return result, nil
	}
	if _, err := s.Commit(ctx, owner, *decision.Next); err != nil {
		if errors.Is(err, store.ErrGone) {
			return Result{}, fmt.Errorf("%w: it was deleted meanwhile: nothing is left to free", err)
		}
		result.Wrote = errors.Is(err, store.ErrAmbiguous)
		return result, err
	}
	result.Wrote = true
	return result, nil
}

func holdsReceipt(p plan.Pod) bool { return p.Receipt.Locks() }
