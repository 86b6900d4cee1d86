package allocator

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/pkg/watch"
)

// findOwner returns the owner of the own pod. For an agent the controller says it, and before that there is none.
func (a *Allocator) findOwner(ctx context.Context, pod *metav1.PartialObjectMetadata) (store.Ref, error) {
	a.agent = pod.Labels[receipt.AssignLabel] == receipt.ByAgent
	if !a.agent {
		return watch.Resolve(ctx, a.o.Store, pod)
	}
	told, _ := a.says(pod)
	return a.refOf(told), nil
}

// says returns what the controller says on the pod of an agent. If another program removed that, a process that starts has what the one before it
// published: the owner of the lock on the pod, and its count. All else is in the receipt.
func (a *Allocator) says(pod *metav1.PartialObjectMetadata) (told receipt.Proposal, ok bool) {
	told, ok = receipt.ProposalOf(pod)
	left := a.work.Left()
	if r, _ := receipt.Of(pod, left.Owner.String()); !ok && a.view.state == unread && r.State == receipt.Locks {
		return receipt.Proposal{Owner: left.Owner, Count: left.Count, Share: receipt.Nothing()}, true
	}
	return told, ok
}

func (a *Allocator) refOf(told receipt.Proposal) store.Ref {
	return store.Ref{APIVersion: told.Owner.APIVersion, Kind: told.Owner.Kind, Name: told.Owner.Name, Namespace: a.o.Namespace}
}

// hearTold takes in what the controller says on the pod of an agent. That is its read of the owner, old or new.
func (a *Allocator) hearTold(pod *metav1.PartialObjectMetadata) {
	told, ok := a.says(pod)
	if !a.agent || !ok { // what it said last holds
		return
	}
	v := &a.view
	if told.Count != v.told.Count && a.state.Strict {
		a.plans.clearAt = a.clock.Now().Add(sweepTime)
	}
	v.told = told
	if v.state = seen; told.Owner.String() != a.ref.String() { // the version of its kind may change
		v.state = other
		return
	}
	if by := told.Requester; by != v.request.by {
		if v.request.by, v.request.granted = by, by != ""; by != "" {
			a.happened.Tell(event.Asked{ID: a.state.Lock.Share.ID, Requester: by})
		}
	}
	if c := told.Confirmed; c != nil && a.confirmedBy().After(time.Time{}) && c.Write == a.written() {
		a.state = a.state.Saw(duty.Others{Slot: c.Slot, Partitions: c.Partitions})
		a.compared(c.By)
	}
}

// written tells the receipt that this process has written from all others, empty if it has written none that stands.
func (a *Allocator) written() string {
	r, err := receipt.Parse(a.wrote)
	if err != nil {
		return ""
	}
	return r.Write
}

// confirmedBy is until when an agent waits for the controller to confirm its lock (T3), the zero time if it does not.
func (a *Allocator) confirmedBy() time.Time {
	if t := a.state; !a.agent || !t.Known || !t.Renewed || t.Listed {
		return time.Time{}
	}
	return a.wroteAt.Add(a.patience)
}

// overdue is for an agent whose lock the controller has not confirmed in time. It reads its pod before it lists by itself: if that is slow, the server is
// busy, and the controller with it. Then it waits longer, because a list for each pod would make that worse.
func (a *Allocator) overdue(ctx context.Context) (lists bool, err error) {
	began := a.clock.Now()
	if err := a.readPod(ctx); err != nil {
		return false, err
	}
	a.patience = a.pace.Confirm(a.clock.Since(began))
	by := a.confirmedBy()
	return !by.IsZero() && !a.clock.Now().Before(by), nil
}

// keeps reports whether the process keeps what it works on although the controller names another owner: that one proposes the same, or nothing so far, and no
// pod asks for the slot. So a workload that is deleted without its pods, and made again, stops no work.
func (a *Allocator) keeps() bool {
	told, has := a.view.told, a.state.Lock.Share
	same := told.Share.ID == has.ID && (!a.o.Divides || told.Share.Of == 0 || told.Share.Partitions.Minus(told.Yield).Equal(has.Partitions))
	return a.agent && a.view.state == other && !a.state.Working.Empty() && (told.Share.Empty() || same) && told.Requester == ""
}

// mayName reports whether this process may write a receipt of its owner. The policy permits an agent the owner that the controller wrote on the pod, and
// that of the receipt that it replaces.
func (a *Allocator) mayName() bool {
	told, _ := receipt.ProposalOf(a.pod)
	r, _ := receipt.Anywhere(a.pod)
	return !a.agent || a.ref.Name != "" && (told.Owner.String() == a.ref.String() || r.Owner == a.ref.String())
}

// seeTold is the owner as the controller tells of it.
func (a *Allocator) seeTold() duty.View {
	told := a.view.told
	v := duty.View{Gone: a.view.state != seen, Leaves: a.view.state == other && !a.keeps(), Count: told.Count, Propose: receipt.Nothing()}
	if v.Gone {
		return v
	}
	v.Propose, v.Yield = told.Share, told.Yield
	v.Propose.Partitions = v.Propose.Partitions.Minus(v.Yield) // by now they may be another pod's: it is not told again of what it has let go of
	if !a.o.Divides || a.work.Pauses() {
		v.Propose.Of, v.Propose.Partitions = 0, placement.Set{}
	}
	if !a.o.Divides {
		v.Yield = placement.Set{}
	}
	v.Asked = a.o.HandsOver && a.view.request.wanted() != "" && a.state.Lock.State == receipt.Locks
	return v
}

// awaits says what an agent without a slot waits for.
func (a *Allocator) awaits() string {
	told := a.view.told
	switch {
	case a.view.state != seen || told.UID == "" || !a.mayName():
		return fmt.Sprintf("idalloc-controller to write annotation %s on this pod: see whether it runs and knows the workload (kubectl idalloc check, and explain)", receipt.ProposalKey)
	case told.Count == 0:
		return fmt.Sprintf("the count to grow: %s is scaled to 0", a.ref)
	}
	return fmt.Sprintf("idalloc-controller to propose one of the %d slots of %s (%s): kubectl idalloc explain says more", told.Count, a.ref, told.Why)
}
