package checks

import (
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// These are all reasons for which two processes may act under one id or on one partition, and for which a token may be lower than an
// earlier one. They are what docs/protocol.md assumes:
//
//	A2  A pod was deleted by force, or declared dead, while its process ran.
//	A3  A pod's receipt or its labels were changed or removed by another writer. This counts until its process has written a receipt again.
//	    Or another writer changed or removed the Lease of a pod that has outlived its grace period.
//
// Between two processes in strict mode there is no other excuse.
func (j *Judge) excused(p, q *world.Process) bool {
	if p.FenceAfter > 0 && q.FenceAfter > 0 {
		return j.unleased(p) || j.unleased(q)
	}
	return j.exposed(p) || j.exposed(q)
}

// lapses is how long the loss of a Lease excuses after its holder has written it again: both list what others lock, and the work of one stops.
const lapses = soonEnough + assignment.StopGrace

// pair is two processes that are at work on one thing.
type pair struct {
	what string
	of   thing
	p, q *world.Process
}

// excusedNow reports whether two processes may be at work on one thing at this moment. "Two pods may work on one x until both have heard of it."
func (j *Judge) excusedNow(what string, of thing, p, q *world.Process) bool {
	is := pair{what, of, p, q}
	if j.excused(p, q) {
		j.together[is] = j.w.Now()
		return true
	}
	last, began := j.together[is]
	return began && p.FenceAfter > 0 && q.FenceAfter > 0 && j.w.Now()-last < lapses
}

// shared reports whether two pods were at work on one thing at once and had an excuse. The pod that began first keeps its token, although the token of the
// other one is higher.
func (j *Judge) shared(what string, of thing, p, q *world.Process) bool {
	what = strings.TrimPrefix(what, "published ")
	for is := range j.together {
		if is.what == what && is.of == of && (is.p.UID == p.UID && is.q.UID == q.UID || is.p.UID == q.UID && is.q.UID == p.UID) {
			return true
		}
	}
	return false
}

// unleased reports whether another writer took its Lease from a process whose receipt does not count any more, because its pod is gone or has outlived its
// grace period. Its Lease alone keeps others off.
func (j *Judge) unleased(p *world.Process) bool {
	v := j.w.Server.Get(object.Pods, p.Pod)
	gone := v == nil || object.UID(v.Object) != p.UID || object.Ended(v.Object) || j.maySeemLost(v) || j.changed[world.PodKey(p.Pod, p.UID)]
	return gone && j.leaseless[p.UID]
}

// noteLease takes in who changes a Lease. What another writer makes of it, or admission, counts until its holder has written it again.
func (j *Judge) noteLease(v *server.Version) {
	if v.Kind.Resource != object.Leases {
		return
	}
	switch p := j.w.Serving; {
	case p != nil && v.Exists() && j.w.Server.MutatesLease != nil: // what admission changes is not what the holder wrote
		j.leaseless[p.UID] = true
	case p != nil && v.Exists():
		delete(j.leaseless, holderOf(v))
	case p == nil && v.Before.Exists():
		j.leaseless[holderOf(v.Before)] = true
	}
}

// holderOf is the UID of the pod that has a Lease, empty if none has.
func holderOf(lease *server.Version) string {
	_, uid, _ := strings.Cut(object.Text(lease.Object, "spec", "holderIdentity"), "/")
	return uid
}

// exposed reports whether others may not know what a process's pod locks.
func (j *Judge) exposed(p *world.Process) bool {
	return j.w.Forced(p) || j.changed[world.PodKey(p.Pod, p.UID)]
}

// isGhost reports whether nothing is promised for a process any more (A2).
func (j *Judge) isGhost(p *world.Process) bool { return p.FenceAfter == 0 && j.w.Forced(p) }

// noteChanged takes in who changed a pod's receipt or its labels. by is nil for another writer than its process.
func (j *Judge) noteChanged(v *server.Version, by *world.Process) {
	key := world.PodKey(v.Name, object.UID(v.Object))
	// A program that began does not stop while the controller finds out whether another pod has locked its slot meanwhile.
	unconfirmed := j.changed[key] && world.IsAssigned(v.Object) && !j.receipt(v).Begun
	j.changed[key] = by == nil || !shows(v) || unconfirmed
}
