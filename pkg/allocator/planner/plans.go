package planner

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/lease"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/peers"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// mostContenders exceeds the number of pods for which an owner has room. A mistyped count would yield more.
	mostContenders = 1 << 15
	// vainTime is the interval at which one of the holders may repeat a plan of partitions that changes nothing.
	vainTime = 30 * time.Second
	// sweepTime is how long the map may name dead pods.
	sweepTime = 4 * time.Second
	// sweepTurn is the extra delay of each further holder, because the holders of lower ids may also be dead.
	sweepTurn = time.Second
	// sweepers is how many holders (lowest ids first) plan because the map names more pods than are Ready. Without the limit every rollout would make
	// all holders plan.
	sweepers = 3
	// idleTime is how long a holder lacks a partition of its target before it plans itself. Until then, it leaves the plan to other pods.
	idleTime = 5 * time.Second
)

// plans is what a process knows about its turn to plan, and about the last plan.
type plans struct {
	// turn is when this process may plan, zero unless a plan would probably change something. extended: the turn was delayed because the API server was
	// slow.
	turn     time.Time
	extended bool
	// made: a plan was made since this pod last lost its slot. planned is the owner of that plan, updated by later news, and decision its result.
	made     bool
	planned  store.Owner
	decision proposal.Decision
	// rollout is this pod's progress in a rolling update at that plan.
	rollout proposal.Rollout
	// contenders estimates how many pods want to plan now.
	contenders int
	// unsureAt is when the watches have been silent for too long to rely on them.
	unsureAt time.Time
	// reservedSince is when this waiter first saw a free slot that it must leave to others.
	reservedSince time.Time
	// undone counts how often others undid what pods wrote. wrote is the last write of this process, and was the row before it. heardUndone: since then the
	// process has heard that something was undone.
	undone      pace.Undone
	heardUndone bool
	wrote       assignment.State
	was         *assignment.Row
	// Until vainUntil, do not repeat a partition plan that changed nothing, nor a plan whose only evidence is watch data or this pod's own cached receipt.
	// again is the back-off of the latter two: the streams may lag behind the lists.
	vainUntil time.Time
	again     *pace.Backoff
	// lacksSince is when this holder began to lack partitions of its target.
	lacksSince time.Time
	vacant     peers.Vacancies
	// surplus is how many more pods the map names than the owner's status counts. sweepFrom is when that began, or when the last plan about it changed nothing.
	surplus     surplusNames
	sweptInVain int
	sweepFrom   time.Time
	// leases are those of slots that the owner no longer has.
	leases lease.Leftovers
	// drops: a plan should drop a request for this pod's slot.
	drops bool
}

// alarm returns when this process has reason to plan. id is its slot of the owner, or NoID.
func (q *plans) alarm(now time.Time, owner store.Owner, id int) time.Time {
	return pace.Soonest(now, q.unsureAt, q.vainUntil, q.vacant.Next(owner.Wish.FailoverAfter, now), q.lacksSince.Add(idleTime), q.sweepsAt(owner, id), q.clearsAt(owner, id))
}

// sweepsAt returns when this holder plans because the map names more pods than the owner has, or than are Ready: a pod that does not start may have
// replaced a dead one. Each holder watches the status anyway, so no pod needs to list or follow others for it. The status lacks relabelled pods and, before
// Kubernetes 1.35, ending pods. Then the plan changes nothing, and the next one waits twice as long.
func (q *plans) sweepsAt(owner store.Owner, id int) time.Time {
	lower, _ := slices.BinarySearch(owner.Record.State.Slots.IDs(), id)
	if q.surplus.pods == 0 && (q.surplus.ready == 0 || lower >= sweepers) {
		return time.Time{}
	}
	return q.sweepFrom.Add((sweepTime + time.Duration(lower)*sweepTurn) << min(q.sweptInVain, 8))
}

// clearsAt returns when this holder deletes Leases of slots that the owner no longer has.
func (q *plans) clearsAt(owner store.Owner, id int) time.Time {
	lower := id
	if slots := owner.Record.State.Slots; len(slots) > 0 {
		lower, _ = slices.BinarySearch(slots.IDs(), id)
	}
	return q.leases.At(lower)
}

// abandoned reports whether the row gives partitions to an id above the count that the map no longer names. These partitions have no work until a plan.
func abandoned(owner store.Owner) bool {
	row := owner.Record.State.Row
	return row != nil && slices.ContainsFunc(row.Owners.IDs(), func(id int) bool { return id >= owner.Count && owner.Record.State.Slots[id] == "" })
}

// surplusNames is how many more pods the map names than the owner has, and than are Ready.
type surplusNames struct{ pods, ready int }

// surplusOf compares the map with the status. A status that does not count even this pod is older than the pod.
func surplusOf(owner store.Owner) surplusNames {
	if owner.Pods == 0 {
		return surplusNames{}
	}
	n := len(owner.Record.State.Slots)
	return surplusNames{max(0, n-owner.Pods), max(0, n-owner.Ready)}
}

// contenders estimates how many pods want to plan: the number of slots to give, or the number of pods that a Deployment is starting.
func contenders(owner store.Owner) int {
	return min(max(1, owner.Count-len(owner.Record.State.Slots), starting(owner)), mostContenders)
}

// starting estimates how many pods of a Deployment start now. A pod that finds a full map cannot see its siblings without a list. Too high an estimate
// costs a short wait; too low an estimate costs each pod a needless list and write. The status lags: while a rolling update has old pods, the controller
// may just have started the maximum.
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
