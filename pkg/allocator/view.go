package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// view is the newest moment of the owner, replaced whole. Its source is the workload that the store reads, and see gives it the form that duty knows.
type view struct {
	owner store.Owner
	state viewState
	// told is what the controller tells the pod of an agent, in place of owner.
	told receipt.Proposal
	// sought is when this process found last that neither the owner nor another one exists, and barred is one that its Role does not permit.
	sought time.Time
	barred store.Ref
	// late says that a write of this process had no answer, and nothing was heard of the owner since.
	late bool
	// fresh says that this process has read or written it, and has not waited since.
	fresh bool
	// lag is that of the stream of the owner.
	lag     lag
	request request
}

// viewState says what is known of the owner.
type viewState int

const (
	// unread: it was not read yet, or has been deleted, it seems. A read tells.
	unread viewState = iota
	// seen: view.owner is its newest moment.
	seen
	// outdated: as seen, but the owner has been written since, or may have been.
	outdated
	// suspected: as seen, but another object may own the pod now.
	suspected
	// gone: a read has shown that it does not exist.
	gone
	// other: another object owns the pod.
	other
)

// ok reports whether there is an owner to act for.
func (v *view) ok() bool { return v.state == seen || v.state == outdated || v.state == suspected }

// alarm is when time alone changes what is known of the owner.
func (v *view) alarm(now time.Time) time.Time {
	return pace.Soonest(now, v.lag.until, v.sought.Add(awayTime), v.request.nextAt)
}

// unseen reports whether the owner must be read.
func (v *view) unseen(now time.Time) bool {
	switch v.state {
	case seen, other:
		return v.late
	case gone:
		return !now.Before(v.sought.Add(awayTime))
	case unread, outdated, suspected:
	}
	return true
}

// outdate says that the owner must be read again.
func (v *view) outdate() {
	if v.state == seen {
		v.state = outdated
	}
}

// suspect has the process find out whether another object owns the pod now.
func (v *view) suspect() {
	switch v.state {
	case unread, seen, outdated:
		v.state = suspected
	case gone:
		v.sought = time.Time{}
	case suspected, other:
	}
}

// request is who asks for this pod's slot.
type request struct {
	// by is the pod that was judged last, granted whether it should have the slot.
	by      string
	granted bool
	// told is the requester that was told of last, and refused the last one that was refused.
	told, refused string
	// denied is how often in a row a pod that asked should not have it. The next one is judged at nextAt at the earliest: requests in vain may come again
	// and again.
	denied pace.Undone
	nextAt time.Time
}

// wanted is the pod that should have the slot, empty if there is none.
func (r *request) wanted() string {
	if !r.granted {
		return ""
	}
	return r.by
}

// adopt takes in a newer moment of the owner.
func (a *Allocator) adopt(owner store.Owner) {
	before := a.view.owner
	if a.view.owner, a.view.late = owner, false; a.view.state != suspected && a.view.state != other {
		a.view.state = seen
	}
	if owner.Controlled && !before.Controlled {
		a.view.suspect()
	}
	if r := &a.view.request; owner.Record.State.Handover[a.state.Lock.Share.ID] != r.by {
		r.by, r.granted = "", false // one that is refused leaves the map, and may come again
	}
	a.heard(before)
}

// awayTime is how often a pod without an owner looks for another one, and how often a process reads what its stream does not know.
const awayTime = 10 * time.Second

// seek finds out whether another object owns the pod now. A pod that no object controls was relabelled, and keeps its owner.
func (a *Allocator) seek(ctx context.Context) error {
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
	t := a.state
	return t.Known && t.Stopping.Empty() && t.Lock.State != receipt.Locks && t.Lock.State != receipt.Unreadable && t.Working.Empty() && t.Lease.Empty()
}

// readOwner reads the owner.
func (a *Allocator) readOwner(ctx context.Context) error {
	before := a.view.state
	if before == suspected || before == gone {
		if err := a.seek(ctx); err != nil || a.view.state == other {
			return err
		}
	}
	began := a.clock.Now()
	owner, err := a.o.Store.Get(ctx, a.ref)
	switch {
	case errors.Is(err, store.ErrGone):
		a.view.state, a.view.late = gone, false
		if before != suspected && before != gone {
			if err := a.seek(ctx); err != nil {
				return err
			}
		}
		a.view.sought = a.clock.Now()
		return nil
	case err != nil:
		return err
	}
	a.contact.Answered()
	a.pace.Read(a.clock.Since(began), a.clock.Since(a.plans.began))
	a.adopt(owner)
	a.view.fresh = true
	return nil
}

// owned is the number of slots that the owner has.
func (a *Allocator) owned() int {
	if a.agent {
		return a.view.told.Count
	}
	return a.view.owner.Count
}

// count is the number of slots that holds for this pod. A condemned pod keeps its slot until Kubernetes removes it. With the policy OrderedReady it
// removes such pods one after the other, and only those that are Ready.
func (a *Allocator) count() int {
	n, id := a.owned(), a.state.Lock.Share.ID
	if id >= n && !a.agent && a.view.owner.Condemned(a.pod) {
		return max(a.work.Shown().Count, id+1)
	}
	return n
}

// offers are what the owner's annotations propose.
func (a *Allocator) offers() (*proposal.Offers, proposal.Mine) {
	o := a.view.owner
	return proposal.NewOffers(o.Count, o.Record.State, o.Wish, a.o.strategy), proposal.Mine{
		Pod: a.o.Pod, Divides: a.o.Divides, Pauses: a.work.Pauses(), HandsOver: a.o.HandsOver, Locked: a.state.Lock.Share, Works: a.state.Working,
	}
}

// see is the owner as this pod sees it.
func (a *Allocator) see() duty.View {
	if a.agent {
		return a.seeTold()
	}
	owner := a.view.owner
	missing := a.view.state == gone
	v := duty.View{Gone: missing || a.view.state == other, Count: a.count(), Propose: receipt.Nothing()}
	v.Leaves = v.Gone && (!missing || owner.UID == "") // without its owner it keeps what it has, if it knows of how many
	if !a.view.ok() {
		return v
	}
	offers, mine := a.offers()
	v.Propose, v.Yield = offers.To(mine)
	if by := offers.Requester(mine); by != "" && a.state.Lock.State == receipt.Locks {
		r := &a.view.request
		judged := r.by == by && (r.granted || a.plans.drops) // a plan may keep one that was refused: it waits by now
		v.Asks, v.Asked = !judged && !a.clock.Now().Before(r.nextAt), r.wanted() == by
	}
	return v
}

// know is what this process knows beside its pod and what it sees, as each of its parts says it.
func (a *Allocator) know() duty.Known {
	surplus := a.view.ok() && surplus(a.view.owner)
	k := duty.Known{
		Ends: a.ends, Unseen: !a.agent && a.view.unseen(a.clock.Now()), Away: a.contact.Away(),
		Retry: a.wait.until, Again: a.contest.again, Turn: a.plans.turn,
		Show: surplus || a.plans.made && !a.named(a.view.owner) || a.agent && a.view.state == seen && a.view.told.Share.Empty(), // one plan is to serve all that run
	}
	a.work.Note(&k)
	return k
}
