package allocator

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/pkg/watch"
)

// view is the newest moment of the owner, replaced whole.
type view struct {
	owner store.Owner
	state viewState
	// sought is when this process looked last for another owner, and barred one that its Role does not permit.
	sought time.Time
	barred store.Ref
	// fresh says that this process has read or written it, and has not waited since.
	fresh bool
	// behind is the stream of the owner.
	behind  behind
	request request
}

// viewState says what is known of the owner.
type viewState int

const (
	// unread: it was not read yet, or has been deleted, it seems. A read tells.
	unread viewState = iota
	// seen: view.owner is its newest moment.
	seen
	// suspected: as seen, but another object may own the pod now.
	suspected
	// gone: a read has shown that it does not exist.
	gone
	// other: another object owns the pod.
	other
)

// ok reports whether there is an owner to act for.
func (v *view) ok() bool { return v.state == seen || v.state == suspected }

// request is who asks for this pod's slot.
type request struct {
	// by is the pod that was judged last, granted whether it should have the slot.
	by      string
	granted bool
	// told is the requester that was told of last, and tries how often the work was asked to stop in vain.
	told  string
	tries int
}

// adopt takes in a newer moment of the owner.
func (a *Allocator) adopt(owner store.Owner) {
	before := a.view.owner
	if a.view.owner = owner; a.view.state != suspected && a.view.state != other {
		a.view.state = seen
	}
	a.known.Unseen, a.plans.late = a.view.state == suspected, false
	if owner.Controlled && !before.Controlled {
		a.suspect()
	}
	if r := &a.view.request; (before.Rollout.Revision != owner.Rollout.Revision || before.Generation != owner.Generation) && !r.granted || owner.Record.State.Handover[a.tenure.Lock.Share.ID] != r.by {
		r.by, r.granted = "", false // it is judged again
	}
	a.plans.heard(a, before)
}

// awayTime is how often a pod without an owner looks for another one, and how often a process reads what its stream does not know.
const awayTime = 10 * time.Second

// suspect has the process find out whether another object owns the pod now.
func (a *Allocator) suspect() {
	if a.known.Unseen = true; a.view.state == unread || a.view.state == seen {
		a.view.state = suspected
	}
}

// seek finds out whether another object owns the pod now. A pod that no object controls was relabelled, and keeps its owner.
func (a *Allocator) seek(ctx context.Context) error {
	a.view.sought = a.clock.Now()
	pod, err := a.getPod(ctx)
	if err != nil {
		return err
	}
	ref, err := watch.Resolve(ctx, a.o.Store, pod)
	known := err == nil
	if !known && !errors.Is(err, store.ErrGone) && !errors.Is(err, watch.ErrNoController) && !errors.Is(err, watch.ErrUnknownOwner) {
		return err
	}
	leaves := known && ref != a.ref
	if leaves {
		if leaves, err = a.follows(ctx, ref); err != nil {
			return err
		}
	}
	switch {
	case leaves:
		a.view.state = other
	case a.view.state != gone:
		a.view.state = unread
	}
	return nil
}

// follows reports whether this pod goes over to another owner. If its Role does not permit that one, it is better off with what it has of the owner
// that is gone.
func (a *Allocator) follows(ctx context.Context, ref store.Ref) (bool, error) {
	if a.view.state != gone {
		return true, nil
	}
	err := a.o.Store.MayFollow(ctx, ref)
	if errors.As(err, new(*store.ForbiddenError)) {
		if a.view.barred != ref {
			a.view.barred = ref
			// Log: the workload was deleted without its pods, and the Role does not permit what controls them now, such as a ReplicaSet. The pod keeps its id.
			// Do: make the workload again, or permit the new one in the Role; see [the workload is deleted](operations.md#the-workload-is-deleted).
			a.log.Info("the pod has another owner, which its Role does not permit: it stays with the former one", "other", ref.String(), "reason", err.Error())
		}
		return false, nil
	}
	return err == nil, err
}

// settled reports whether this process has nothing any more of an owner that it leaves.
func (a *Allocator) settled() bool {
	t := a.tenure
	return t.Known && t.Stopping.Empty() && t.Lock.State != receipt.Locks && t.Lock.State != receipt.Unreadable && t.Working.Empty() && t.Lease.Empty()
}

// readOwner reads the owner.
func (a *Allocator) readOwner(ctx context.Context) error {
	before := a.view.state
	if before == suspected || before == gone {
		if err := a.seek(ctx); err != nil || a.view.state == other {
			a.known.Unseen = a.known.Unseen && err != nil
			return err
		}
	}
	began := a.clock.Now()
	owner, err := a.o.Store.Get(ctx, a.ref)
	switch {
	case errors.Is(err, store.ErrGone):
		if a.view.state, a.known.Unseen = gone, false; before == suspected || before == gone {
			return nil
		}
		return a.seek(ctx)
	case err != nil:
		return err
	}
	a.contact.Answered()
	a.pace.Read(a.clock.Since(began), a.clock.Since(a.plans.began))
	a.adopt(owner)
	a.view.fresh = true
	return nil
}

// count is the number of slots that holds for this pod. A condemned pod keeps its slot until Kubernetes removes it. With the policy OrderedReady it
// removes such pods one after the other, and only those that are Ready.
func (a *Allocator) count() int {
	n, id := a.view.owner.Count, a.tenure.Lock.Share.ID
	if id >= n && a.view.owner.Condemned(a.pod) {
		return max(a.work.shown.Count, id+1)
	}
	return n
}

// see is the owner as this pod sees it.
func (a *Allocator) see() duty.View {
	owner := a.view.owner
	missing := a.view.state == gone
	v := duty.View{Gone: missing || a.view.state == other, Count: a.count(), Propose: receipt.Nothing()}
	v.Leaves = v.Gone && (!missing || owner.UID == "") // without its owner it keeps what it has, if it knows of how many
	if !a.view.ok() {
		return v
	}
	id, named := owner.Record.State.Slots.Of(a.o.Pod)
	if mine := a.tenure.Lock.Share; !mine.Empty() {
		id, named = mine.ID, true // what the map says of it is for the next plan
	}
	if named {
		v.Propose = a.proposed(id)
		v.Yield = a.yields(id)
	}
	if by := owner.Record.State.Handover[a.tenure.Lock.Share.ID]; by != "" && a.o.HandsOver && a.tenure.Lock.State == receipt.Locks {
		v.Asks, v.Asked = a.view.request.by != by, a.view.request.by == by && a.view.request.granted
	}
	return v
}

// proposed returns the slot with what the row proposes to its id.
func (a *Allocator) proposed(id int) receipt.Share {
	s := receipt.Share{ID: id}
	if !a.o.Divides || a.work.paused || a.work.rest.active {
		return s
	}
	mine, row := a.tenure.Lock.Share, a.view.owner.Record.State.Row
	force, _ := proposal.InForce(a.view.owner.Wish, row, a.said(), a.o.strategy)
	if s.Of = force.Count; row != nil && s.Of > 0 {
		s.Partitions = row.Owners[id].Intersect(placement.Between(0, s.Of-1))
	}
	if !a.o.HandsOver && mine.Of > 0 { // it cannot know when work has stopped, so it lets nothing go
		s.Of, s.Partitions = max(s.Of, mine.Of), s.Partitions.Union(mine.Partitions)
	}
	return s
}

// said returns how many partitions there are by the own receipt, 0 if it does not say so.
func (a *Allocator) said() int {
	if mine := a.tenure.Lock.Share; a.view.owner.Record.State.Row == nil || !mine.Partitions.Empty() {
		return mine.Of
	}
	return 0
}

// target returns what the ids should own that the row names. With works, what this pod works on is its id's, and nothing else is, whatever the row says.
func (a *Allocator) target(id int, works bool) (target placement.Owners, known bool) {
	mine, row := a.tenure.Working.Partitions, a.view.owner.Record.State.Row
	if works {
		owners := placement.Owners{}
		for other, set := range row.Owners {
			owners[other] = set.Minus(mine)
		}
		owners[id] = mine
		row = &assignment.Row{Count: row.Count, Strategy: row.Strategy, Owners: owners}
	}
	return proposal.Target(a.view.owner.Count, row, a.view.owner.Wish, a.said(), a.o.strategy)
}

// yields returns the partitions of the id that the target gives to others, or to nobody because they are above the count. Of those that the pod
// works on they are only those that go by that, too: a row that is wrong stops no work.
func (a *Allocator) yields(id int) placement.Set {
	mine, row := a.tenure.Lock.Share.Partitions, a.view.owner.Record.State.Row
	if !a.o.Divides || !a.o.HandsOver || row == nil {
		return placement.Set{}
	}
	force, _ := proposal.InForce(a.view.owner.Wish, row, a.said(), a.o.strategy)
	has := mine.Union(row.Owners[id])
	above := has.Minus(placement.Between(0, force.Count-1))
	if _, listed := row.Owners[id]; !listed {
		return above // the row is wrong, or this id is about to join
	}
	theirs := func(works bool) (set placement.Set) {
		target, _ := a.target(id, works)
		for other, owned := range target {
			if other != id {
				set = set.Union(owned)
			}
		}
		return set
	}
	goes := theirs(false)
	return has.Intersect(goes).Minus(a.tenure.Working.Partitions.Minus(theirs(true))).Union(above)
}

// minRefusal and maxRefusal bound for how long the work goes on after it did not stop. The time doubles with each try.
const (
	minRefusal = 30 * time.Second
	maxRefusal = 10 * time.Minute
)

// refuse has the work on a part go on for a while, under the same id. Without an id a slow upgrade would become an outage.
func (a *Allocator) refuse(part duty.Part) {
	r, now := &a.view.request, a.clock.Now()
	if !now.Before(a.known.Refused) {
		a.known.Kept = duty.Part{}
	}
	a.known.Kept = a.known.Kept.And(part)
	a.known.Refused = now.Add(min(minRefusal<<min(r.tries, 8), maxRefusal))
	r.tries++
}

// judge finds out whether the pod that asks for the slot should have it. For one that is dead or of an older revision the work would be
// stopped in vain.
func (a *Allocator) judge(ctx context.Context) error {
	by := a.view.owner.Record.State.Handover[a.tenure.Lock.Share.ID]
	wanted, err := a.wanted(ctx, by)
	if err != nil {
		return err
	}
	r := &a.view.request
	r.by, r.granted = by, wanted
	switch {
	case !wanted:
		a.plans.drops = true
	case r.told != by:
		r.told = by
		a.happened.Tell(event.Asked{ID: a.tenure.Lock.Share.ID, Requester: by})
	}
	return nil
}

// wanted reports whether the pod of this name should have the slot: it lives, is this owner's and waits; and it is of the current revision and this pod
// is not, or this pod is condemned. Nothing else that somebody writes down as a request stops work.
func (a *Allocator) wanted(ctx context.Context, by string) (bool, error) {
	owner := a.view.owner
	pod, err := a.o.Store.GetLivePod(ctx, a.o.Namespace, by)
	if err != nil || pod == nil {
		return false, err
	}
	r, _ := receipt.Of(pod, a.ref.String())
	// A pod behind its gate has written nothing yet.
	waits := r.State == receipt.Waits || r.State == receipt.None && pod.Labels[receipt.AssignLabel] == receipt.ByController
	if _, has := owner.Record.State.Slots.Of(by); has || !waits || pod.DeletionTimestamp != nil {
		return false, nil
	}
	if !owner.Rolls() {
		controller := metav1.GetControllerOfNoCopy(pod)
		return controller != nil && controller.UID == owner.UID && owner.Condemned(a.pod) && !owner.Condemned(pod), nil
	}
	own, err := a.o.Store.RevisionOf(ctx, a.pod)
	switch {
	case errors.Is(err, store.ErrGone): // it is of no revision any more
	case err == nil && own.Number != "" && own.Controller != owner.UID: // the Deployment has let the ReplicaSet go
		a.suspect()
		return false, nil
	case err != nil || own.Current(owner):
		return false, err
	}
	its, err := a.o.Store.RevisionOf(ctx, pod)
	if errors.Is(err, store.ErrGone) {
		return false, nil
	}
	return err == nil && its.Controller == owner.UID && its.Current(owner), err
}
