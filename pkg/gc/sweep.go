package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// fewVictims is the largest number of dead holders whose reasons are read one by one.
const fewVictims = 8

// Victim is a holder in the map that no longer holds the slot, or never did.
type Victim struct {
	// ID is its slot.
	ID int
	// Pod is the name of its pod.
	Pod string
	// Reason explains why the pod does not keep the slot, as a clause such as "its pod is gone".
	Reason string
}

// Result is what a sweep found and did.
type Result struct {
	// Victims are the holders that lose their entries, sorted by id.
	Victims []Victim
	// Restored: the map was unreadable, or lacked what live pods lock, and the sweep rewrites it.
	Restored bool
	// Wrote: the sweep changed the owner. It is false after a dry run.
	Wrote bool
	// Leases are the slots whose Leases the sweep deletes: slots that the owner does not have, with Leases that no pod has. They are sorted.
	Leases []int
}

// Sweep frees the slots of dead holders. It gives a slot only to a pod that has asked for exactly that slot. It leaves other slots, and partitions, to the
// pods, because these know their own revision. With dryRun it writes nothing.
//
// Sweep blocks until it is done. After a conflict, and after a write without an answer, it tries again until the steps of backoff are used up or ctx ends.
// Errors: those of store.Store's Get, Propose, EachLease and DeleteLease, and those of census.Survey.
func Sweep(ctx context.Context, s *store.Store, ref kinds.Ref, backoff wait.Backoff, dryRun bool) (Result, error) {
	result, err := sweepMap(ctx, s, ref, backoff, dryRun)
	if err == nil {
		result.Leases, err = leases(ctx, s, ref, dryRun)
	}
	return result, err
}

func sweepMap(ctx context.Context, s *store.Store, ref kinds.Ref, backoff wait.Backoff, dryRun bool) (Result, error) {
	var lost Result // the result of a write without an answer
	for {
		result, err := sweepOnce(ctx, s, ref, dryRun)
		if err == nil {
			if !result.Wrote && lost.Wrote {
				return lost, nil // that write has happened
			}
			return result, nil
		}
		ambiguous := errors.Is(err, request.ErrAmbiguous)
		if (!ambiguous && !errors.Is(err, request.ErrConflict)) || backoff.Steps == 0 {
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

func sweepOnce(ctx context.Context, s *store.Store, ref kinds.Ref, dryRun bool) (Result, error) {
	owner, err := s.GetOwner(ctx, ref)
	if err != nil {
		return Result{}, err
	}
	pods, err := census.Survey(ctx, s, owner)
	if err != nil {
		return Result{}, err
	}
	decision := proposal.Plan(proposal.Input{
		Count: owner.Count, State: owner.Record.State, Pods: pods, Room: owner.Room(), Now: s.Clock.Now(),
		Partitions: proposal.Division{Unchanged: true},
	})
	next := decision.Next
	if next == nil && len(owner.Record.Problems) > 0 {
		next = &owner.Record.State // without what is unreadable
	}
	locked := func(c proposal.Change) bool { return owner.Record.State.Handover[c.ID] != c.Pod } // the others were asked for
	result := Result{Restored: len(owner.Record.Problems) > 0 || slices.ContainsFunc(decision.Filled, locked)}
	if result.Victims, err = victims(ctx, s, owner, decision.Freed); err != nil {
		return Result{}, err
	}
	switch {
	case next == nil && decision.TooLarge != nil:
		return Result{}, decision.TooLarge
	case next == nil || dryRun:
		return result, nil
	}
	if _, err := s.Propose(ctx, owner, *next); err != nil {
		if errors.Is(err, request.ErrGone) {
			return Result{}, fmt.Errorf("%w: it was deleted meanwhile: nothing is left to free", err)
		}
		result.Wrote = errors.Is(err, request.ErrAmbiguous)
		return result, err
	}
	result.Wrote = true
	return result, nil
}

// victims returns the freed holders with their reasons.
func victims(ctx context.Context, s *store.Store, owner store.Owner, freed []proposal.Change) ([]Victim, error) {
	reasons := map[proposal.Cause]string{
		proposal.CauseDead:   "its pod is gone, Succeeded or Failed",
		proposal.CauseLost:   "its pod has outlived its grace period, and the Lease of the slot protects what it may still do",
		proposal.CauseGiven:  "its pod gave it up",
		proposal.CauseUnused: "its pod has not taken it, and may not any more",
		proposal.CauseLocked: "a receipt says otherwise: it, or its pod's other slot, is locked",
	}
	var out []Victim
	for _, c := range freed {
		v := Victim{ID: c.ID, Pod: c.Pod, Reason: reasons[c.Cause]}
		if c.Cause == proposal.CauseDead && len(freed) <= fewVictims {
			var err error
			if v.Reason, err = end(ctx, s, owner.Namespace, c.Pod); err != nil {
				return nil, err
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// end describes how the pod of a dead holder ended.
func end(ctx context.Context, s *store.Store, namespace, name string) (string, error) {
	pod, err := s.GetFullPod(ctx, namespace, name)
	switch {
	case errors.Is(err, request.ErrGone):
		return "its pod is gone", nil
	case err != nil:
		return "", err
	}
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	reason, _, _ := unstructured.NestedString(pod.Object, "status", "reason")
	switch {
	case !census.Finished(phase):
		return "its pod has other labels, and locks nothing", nil
	case reason != "":
		return fmt.Sprintf("its pod is %s (%s)", phase, reason), nil
	}
	return "its pod is " + phase, nil
}
