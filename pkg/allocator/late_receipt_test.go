package allocator

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/test/apifake"
)

// ours is a receipt of this process's pod.
func ours(r assignment.Receipt) assignment.Receipt {
	r.UID, r.Owner = string(apifake.UIDOf(me)), "Deployment/"+apifake.Worker
	return r
}

// A process that goes on believing in a lock that its predecessor has given up waits for ever: the plan gives no slot to a pod whose receipt
// gives it, and only this process takes that back.
func TestAPlanLearnsWhatAnEarlierProcessWroteLate(t *testing.T) {
	lock, gave := ours(assignment.Receipt{ID: 0, Epoch: epoch}), ours(assignment.Receipt{ID: 0, GaveUp: true, Gives: true})
	for name, tc := range map[string]struct {
		before, late *assignment.Receipt
		wrote, held  bool
		err          error
		gaveUp       bool // as far as this process knows afterwards
	}{
		"it gave the slot":                   {before: &lock, late: &gave, err: errLateReceipt, gaveUp: true},
		"it gave without a receipt before":   {late: &gave, err: errLateReceipt, gaveUp: true},
		"nothing came":                       {before: &lock, late: &lock},
		"somebody removed that it gave":      {before: &gave, gaveUp: true},
		"somebody changed what we wrote":     {before: &gave, late: &lock, wrote: true, gaveUp: true},
		"it wrote after we removed ours":     {late: &gave, wrote: true, err: errLateReceipt, gaveUp: true},
		"a holder hears of it by its stream": {before: &lock, late: &gave, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := bare()
			if tc.before != nil {
				setReceipt(pod, *tc.before)
			}
			server := shop(t, apifake.Assigned(1, naming(other, epoch)), pod, apifake.Holding(other, 0, epoch))
			a := startedOn(t, server, Options{})
			a.wrote = tc.wrote
			owner, err := a.readOwner(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tc.held {
				a.held = &held{id: 0, token: epoch, view: owner}
			}
			server.Change(apifake.Pods, me, func(o *unstructured.Unstructured) {
				o.SetAnnotations(nil)
				if tc.late != nil {
					setReceipt(o, *tc.late)
				}
			})
			if _, _, err := a.planAndCommit(t.Context(), owner, plan.Claim, false); !errors.Is(err, tc.err) {
				t.Errorf("the plan returns %v, not %v", err, tc.err)
			}
			if a.gaveUp() != tc.gaveUp {
				t.Errorf("the process takes only from a write of its own: %t", a.gaveUp())
			}
			if tc.err == nil {
				return
			}
			if _, _, err := a.planAndCommit(t.Context(), owner, plan.Claim, false); err != nil {
				t.Errorf("the next plan returns %v", err)
			}
		})
	}
}

// Each plan on a map that nobody can make clean comes to a write.
func TestAHolderDoesNotWriteAnUntrackedMapForNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		token  int64
		writes bool
	}{
		"it confirms the slot":       {token: epoch},
		"it is from before the take": {token: epoch + 1, writes: true},
	} {
		t.Run(name, func(t *testing.T) {
			state := naming(me, epoch)
			state.FenceAfter = 0
			a := startedOn(t, shop(t, apifake.Untracked(apifake.Assigned(1, state)), bare()), Options{})
			if err := a.writeReceipt(t.Context(), &assignment.Receipt{UID: a.PodUID(), Owner: a.ref.String(), ID: 0, Epoch: epoch}); err != nil {
				t.Fatal(err)
			}
			owner, err := a.readOwner(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			a.held = &held{id: 0, token: tc.token, view: owner}
			if written, _, err := a.planAndCommit(t.Context(), owner, plan.Claim, false); err != nil || (written != nil) != tc.writes {
				t.Errorf("it writes: %t, %v", written != nil, err)
			}
		})
	}
}
