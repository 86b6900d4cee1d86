package checks

import (
	"math"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// isForgotten reports whether nothing but a clock puts the token after those that the id had before.
func (j *Judge) isForgotten(b identity.Identity) bool {
	least, forgotten := j.forgotten[b.ID]
	return forgotten && b.Epoch >= least
}

// began checks the token of an id that a process begins to act under.
func (j *Judge) began(p *world.Process, b identity.Identity) {
	last, known := j.byID[b.ID]
	switch {
	case !known, j.isForgotten(b):
	case last.p.UID != p.UID && b.Epoch < last.token && j.isGhost(p):
		return // it was confirmed before its successor, and its token says so
	case last.p.UID != p.UID && b.Epoch <= last.token:
		j.reportf(token, "id %d: %s has %d, its predecessor %s had %d", b.ID, p.ID, b.Epoch, last.p.ID, last.token)
	case last.p.UID == p.UID && b.Epoch < last.token:
		j.reportf(token, "id %d: the token of %s fell from %d to %d", b.ID, p.ID, last.token, b.Epoch)
	}
	if !known || b.Epoch > last.token || j.isForgotten(b) {
		j.byID[b.ID] = heldBy{p: p, token: b.Epoch}
	}
	if !known || b.Epoch < last.token { // this one or a higher one may have been given before it was forgotten
		delete(j.forgotten, b.ID)
	}
	j.noteLateGhost(p, b)
	if id, had := j.idOf[p.UID]; had && id != b.ID && j.w.Now()-j.excused > 10*time.Minute && !j.failed(p) {
		j.reportf(moves, "%s moved from id %d to %d", p.ID, id, b.ID)
	}
	j.idOf[p.UID] = b.ID
}

// noteLateGhost notes that nothing tells planners of the token of a process whose pod is gone, if somebody erased the epoch between the
// read that confirmed its id and the begin of its work.
func (j *Judge) noteLateGhost(p *world.Process, b identity.Identity) {
	owner := j.w.Server.Get(j.w.Profile.Resource, world.OwnerName)
	if owner == nil || j.w.Profile.Skew == 0 || !j.isGhost(p) {
		return
	}
	if epoch := epochOf(owner); max(epoch, j.receipts(math.MaxInt64)) < b.Epoch {
		j.forgotten[b.ID] = epoch
	}
}

// failed reports whether the program of a process's pod failed lately: it stands back for longer than anything else is an excuse for.
func (j *Judge) failed(p *world.Process) bool {
	v := j.w.Server.Get(object.Pods, p.Pod)
	latest := j.w.Wall().Add(j.w.Profile.Skew + j.w.Profile.Ahead) // by a clock that is ahead its epoch is right
	return v != nil && object.UID(v.Object) == p.UID && j.receiptAt(v, latest).Failures() > 0
}

// noteForgotten notes the ids whose last token nothing told the planner of: neither the owner as it was, whose epoch somebody erased,
// nor the receipt of a live pod. Where clocks agree the time still does.
func (j *Judge) noteForgotten(v *server.Version) {
	epoch := epochOf(v)
	if j.w.Serving == nil && isUntracked(v) && epoch > 0 && epoch < epochOf(v.Before) {
		// Whoever wrote this map, which somebody brings back, takes what it names.
		j.forget(epoch, j.receipts(v.RV))
	}
	if j.w.Serving == nil || j.w.Profile.Skew == 0 || epoch == epochOf(v.Before) {
		return
	}
	before := epochOf(v.Before)
	if _, clean := entries(v.Before); !clean && assignment.CheckEpoch(before, j.w.Wall().Add(-j.w.Profile.Skew)) != nil {
		before = 0 // damage, as far as a clock that is behind can tell
	}
	known := before
	if v.Before != nil {
		known = max(before, j.receipts(v.Before.RV))
	}
	j.forget(epoch, known)
}

// forget notes the ids and partitions whose last token a planner that knew of no higher epoch than known did not exceed.
func (j *Judge) forget(epoch, known int64) {
	for id, last := range j.byID {
		if epoch <= last.token && known < last.token {
			if least, again := j.forgotten[id]; !again || epoch < least {
				j.forgotten[id] = epoch
			}
		}
	}
	for k, last := range j.parts.last {
		if epoch <= last.token && known < last.token {
			if least, again := j.parts.forgotten[k]; !again || epoch < least {
				j.parts.forgotten[k] = epoch
			}
		}
	}
}

// isUntracked reports whether the server does not know who wrote an owner's map.
func isUntracked(v *server.Version) bool {
	return !v.Manages(assignment.FieldManager, assignment.SealKey) && !v.ManagedByOthers(assignment.FieldManager, assignment.SealKey)
}

// epochOf is an owner's epoch, 0 where there is none.
func epochOf(v *server.Version) int64 {
	if !v.Exists() {
		return 0
	}
	epoch, err := strconv.ParseInt(object.Annotation(v.Object, assignment.EpochKey), 10, 64)
	if err != nil {
		return 0
	}
	return epoch
}

// receipts is the highest epoch of a live pod's receipt that a planner has seen for sure: it stood when the owner's version that the
// planner read was written, before the planner listed the pods, and it still stands.
func (j *Judge) receipts(owner int64) int64 {
	most := int64(0)
	for _, v := range j.w.Server.Objects(object.Pods) {
		then := v
		for then != nil && then.RV > owner {
			then = then.Before
		}
		if !then.Exists() || object.Ended(v.Object) {
			continue
		}
		if is, was := j.receipt(v), j.receipt(then); is != nil && was != nil {
			most = max(most, min(is.Epoch, was.Epoch))
		}
	}
	return most
}

// receipt is that of a pod, nil if it has none that can be read.
func (j *Judge) receipt(pod *server.Version) *assignment.Receipt { return j.receiptAt(pod, j.w.Wall()) }

// receiptAt is that of a pod as a clock tells that shows now.
func (j *Judge) receiptAt(pod *server.Version, now time.Time) *assignment.Receipt {
	owner := object.KindOf(j.w.Profile.Resource).Name + "/" + world.OwnerName
	r, err := assignment.ReceiptOf(object.Annotations(pod.Object), object.UID(pod.Object), owner, now)
	if err != nil {
		return nil
	}
	return r
}
