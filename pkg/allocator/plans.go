package allocator

import (
	"math"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/peers"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// mostContenders is more than the pods for which an owner has room. A mistyped count says more.
	mostContenders = 1 << 15
	// vainTime is how often one of the holders plans in vain about partitions.
	vainTime = 30 * time.Second
	// sweepTime is how long the map may name dead pods, and sweepTurn how much longer for each holder whose id is lower: it may be dead, too.
	sweepTime, sweepTurn = 4 * time.Second, time.Second
	// sweepers is how many holders plan because the map names more pods than are Ready, which is so whenever pods start, and how many look for Leases
	// that are left. The pods of the lowest ids may never start.
	sweepers = 3
)

// plans is what a process knows about its turn to plan, and about what the last plan came to.
type plans struct {
	// began is when this process sent its first request.
	began time.Time
	// turn is when it may plan, zero unless a plan would change something as far as it knows. extended says that it was put off because the API
	// server was slow.
	turn     time.Time
	extended bool
	// made says that a plan was made since this pod has no slot. planned is the owner that it was about, with what was heard since, and decision
	// what it came to.
	made     bool
	planned  store.Owner
	decision proposal.Decision
	// rollout is where this pod stood in a rolling update at that plan.
	rollout proposal.Rollout
	// contenders is an estimate of how many pods want to plan now.
	contenders int
	// unsureAt is when the watches have been silent for so long that they are not relied on.
	unsureAt time.Time
	// reservedSince is when this waiter first saw a free slot that it must leave to others.
	reservedSince time.Time
	// undone is how often others undid what pods wrote. The last write of this process was wrote, and the row was what was before. heardUndone says that
	// it has heard since that something was undone.
	undone      pace.Undone
	heardUndone bool
	wrote       assignment.State
	was         *assignment.Row
	// vainUntil is until when a plan about partitions is not made again, or one that the streams alone speak for, or this pod's receipt as it knows it.
	// again is the back-off of the latter two: the streams may lag behind the lists.
	vainUntil time.Time
	again     *pace.Backoff
	// lacksSince is since when this holder has lacked partitions that are to be its own.
	lacksSince time.Time
	vacant     peers.Vacancies
	// surplus is how many pods more the map names than the owner's status counts. sweepFrom is since when, or since the last plan for it in vain.
	surplus     surplusNames
	sweptInVain int
	sweepFrom   time.Time
	// clearAt is when the first holder looks for Leases of slots that the owner does not have any more. It is zero if none is left.
	clearAt time.Time
	// drops says that a plan is to drop a request for this pod's slot.
	drops bool
}

// gave forgets what is about the slot that was given up or never taken.
func (p *plans) gave() { p.made, p.reservedSince, p.vainUntil = false, time.Time{}, time.Time{} }

// heard takes in a newer moment of the owner.
func (a *Allocator) heard(before store.Owner) {
	p, now := &a.plans, a.view.owner
	a.hearUndone(before, now)
	if n := surplusOf(now); n != p.surplus {
		p.surplus, p.sweptInVain, p.sweepFrom = n, 0, a.clock.Now()
	}
	if now.Count != before.Count && a.state.Strict {
		p.clearAt = a.clock.Now().Add(sweepTime)
	}
	if id, named := now.Record.State.Slots.Of(a.o.Pod); a.contest.lease.Holder != "" && (!named || id != a.contest.lease.ID) {
		a.contest = contest{backoff: a.contest.backoff} // it is to have another slot, or none
	}
	if abandoned(now) && !abandoned(before) {
		p.vainUntil = time.Time{}
	}
	a.changes.Heard(now, a.state.Lock.Share)
	if a.o.Divides && !a.state.Working.Empty() {
		a.changes.Wish(now, a.state.Working.ID)
	}
	if n := contenders(now); n > p.contenders || !p.made && p.contenders == 0 {
		p.contenders = n
	}
	if !a.named(before) && a.named(now) && a.contact.Owner() != nil && !p.made && a.state.Lock.State != receipt.Locks {
		a.contest.again = latest(a.contest.again, a.clock.Now().Add(a.pace.Queue(p.contenders))) // all hear of it at the same moment
		a.listenAt = latest(a.listenAt, a.contest.again)
	}
}

// abandoned reports whether the row gives partitions to an id above the count that the map does not name any more. They rest until a plan.
func abandoned(owner store.Owner) bool {
	row := owner.Record.State.Row
	return row != nil && slices.ContainsFunc(row.Owners.IDs(), func(id int) bool { return id >= owner.Count && owner.Record.State.Slots[id] == "" })
}

// surplusNames says by how many pods the map names more than the owner has, and than it has Ready ones.
type surplusNames struct{ pods, ready int }

// surplusOf compares the map with the status. One that counts not even this pod is older than it.
func surplusOf(owner store.Owner) surplusNames {
	if owner.Pods == 0 {
		return surplusNames{}
	}
	n := len(owner.Record.State.Slots)
	return surplusNames{max(0, n-owner.Pods), max(0, n-owner.Ready)}
}

// hearUndone takes in that the owner does not say any more what it said of this pod. All whom that concerns wait longer, not only who wrote it.
func (a *Allocator) hearUndone(before, now store.Owner) {
	says := func(owner store.Owner) bool {
		_, asks := owner.Record.State.Handover.Of(a.o.Pod)
		return asks || a.named(owner)
	}
	if says(before) && !says(now) && a.state.Lock.State != receipt.GaveUp && !a.ends {
		a.plans.heardUndone = true
		a.undone()
	}
}

// noteUndone takes in a write, and that it changes again what others undid of the last one. It may have been heard of already.
func (a *Allocator) noteUndone(is, next assignment.State) {
	p := &a.plans
	if !p.heardUndone && (p.wrote.Undone(is, next) || !is.Row.Same(next.Row) && !p.was.Same(p.wrote.Row) && p.wrote.Row.Same(next.Row)) {
		a.undone()
	}
	p.was, p.wrote, p.heardUndone = is.Row, next, false
}

// undone has the next turns of this process come later, whatever it is.
func (a *Allocator) undone() {
	const told = 4 // times in a row
	if a.plans.undone.Again(a.clock.Now()) == told {
		a.happened.Tell(event.Undone{Longest: pace.MaxDamping})
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// named reports whether the map names this pod for the slot that it locks. If it locks none, any slot will do.
func (a *Allocator) named(owner store.Owner) bool {
	if lock := a.state.Lock; lock.State == receipt.Locks {
		return owner.Record.State.Slots[lock.Share.ID] == a.o.Pod
	}
	_, named := owner.Record.State.Slots.Of(a.o.Pod)
	return named
}

// contenders estimates how many pods want to plan: as many as there are slots to give, or as many as a Deployment is starting.
func contenders(owner store.Owner) int {
	return min(max(1, owner.Count-len(owner.Record.State.Slots), starting(owner)), mostContenders)
}

// starting estimates how many pods of a Deployment start now. A pod that comes to a full map cannot see its siblings without a list. An estimate that
// is too high costs a short wait, and one that is too low costs each pod a list and a write in vain. The status lags: while there are old pods in a
// rolling update the controller may just have started as many as it may.
func starting(owner store.Owner) int {
	if !owner.Rolls() {
		return 0
	}
	r := owner.Rollout
	if r.Progress.Updated < r.Progress.Replicas && !r.Recreate {
		return r.MaxSurge + r.MaxUnavailable
	}
	return max(r.Progress.Replicas, owner.Count) - r.Progress.Available
}

// surplus reports whether more pods of a Deployment live than there are slots.
func surplus(owner store.Owner) bool {
	return owner.Rolls() && owner.Rollout.Progress.Replicas > owner.Count
}

func (a *Allocator) input(owner store.Owner, pods []proposal.Pod, rollout proposal.Rollout) proposal.Input {
	p, now := &a.plans, a.clock.Now()
	in := proposal.Input{
		Count: owner.Count, State: owner.Record.State, Pods: pods, Me: a.o.Pod, Rollout: rollout, Room: owner.Room(), Now: now,
		Partitions: proposal.Division{
			Wish: owner.Wish, Vacant: p.vacant.Over(owner.Wish.FailoverAfter, now), AtOnce: !owner.Wish.HasFailoverAfter && !owner.RollsNow,
			Joins: a.joins(), Strategies: a.o.strategy,
		},
	}
	if failures := a.receipt().Failures(); failures > 0 {
		in.StandsBack = now.Sub(p.began) < a.pace.StandBack(failures)
	}
	if !p.reservedSince.IsZero() {
		in.FreeFor = time.Duration(math.Ceil(float64(now.Sub(p.reservedSince)) * float64(time.Second) / float64(a.pace.Longer(time.Second))))
	}
	return in
}
