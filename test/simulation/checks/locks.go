package checks

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// noteLocks takes in which partitions a pod's receipt locks.
func (j *Judge) noteLocks(v *server.Version) {
	if j.w.Profile.Partitions == 0 || v.Kind.Resource != object.Pods {
		return
	}
	j.noteRemoved(v)
	delete(j.parts.locks, v.Name)
	if r := j.lockOf(v); r != nil {
		for _, other := range j.parts.locks {
			for k := range other.Intersect(*r.Partitions).All() {
				j.parts.tied[k] = j.w.Now()
			}
		}
		j.parts.locks[v.Name] = *r.Partitions
	}
}

// noteRemoved takes in whether somebody removed a pod's word that it yields partitions.
func (j *Judge) noteRemoved(v *server.Version) {
	if v.Before == nil || j.w.Serving != nil {
		return
	}
	var yields placement.Set
	if was := j.lockOf(v.Before); was != nil {
		yields = was.Yields
	}
	if is := j.lockOf(v); is != nil {
		yields = yields.Minus(is.Yields)
	}
	if !yields.Empty() {
		pod := world.PodKey(v.Name, object.UID(v.Before.Object))
		j.parts.removed[pod] = j.parts.removed[pod].Union(yields)
	}
}

// lockedAgain reports whether a process took a partition again that its pod had yielded, because somebody removed the receipt that said so, and
// locks it. A late write that saw the yield may leave the partition with nobody. The lock keeps others off, and the process stops.
func (j *Judge) lockedAgain(p *world.Process, k int) bool {
	if !j.parts.removed[world.PodKey(p.Pod, p.UID)].Contains(k) {
		return false
	}
	pod := j.w.Server.Get(object.Pods, p.Pod)
	if pod == nil || object.UID(pod.Object) != p.UID {
		return false
	}
	r := j.lockOf(pod)
	return r != nil && r.Partitions.Contains(k)
}

// lockOf is the receipt of a live pod that locks partitions, nil if there is none.
func (j *Judge) lockOf(v *server.Version) *assignment.Receipt {
	if !v.Exists() || object.Ended(v.Object) {
		return nil
	}
	if r := j.receiptAt(v, j.w.Wall().Add(j.w.Profile.Skew+j.w.Profile.Ahead)); r.Locks() && r.Partitions != nil {
		return r
	}
	return nil
}

// checkTaken reports a write that gives a partition to another id while somebody works on it, or that takes it from the id of its worker: on
// a clean map, and in a map that it restores if only that pod locks the partition.
func (j *Judge) checkTaken(v *server.Version) {
	if j.w.Profile.Partitions == 0 || j.w.Serving == nil {
		return
	}
	before, wasClean := rowOf(v.Before)
	after, clean := rowOf(v)
	if !clean || after == nil || (wasClean && before.Same(after)) {
		return
	}
	for _, p := range j.w.Processes {
		b := p.Belief()
		if b == nil || j.isGhost(p) {
			continue
		}
		for k := range p.Working() {
			if after.Owners[b.ID].Contains(k) {
				continue
			}
			switch to := ownerOf(after, k); {
			case to < 0 && j.lockedAgain(p, k):
			case wasClean && before.Owners[b.ID].Contains(k):
				j.reportf(exclusion, "partition %d is taken from id %d, and %s works on it", k, b.ID, p.ID)
			case to >= 0:
				j.reportf(exclusion, "partition %d is given to id %d, and %s works on it", k, to, p.ID)
			case !wasClean && j.locksAlone(v, p, b.ID, k):
				j.reportf(exclusion, "partition %d is nobody's in a map that was restored, and %s alone locks it and works on it", k, p.ID)
			}
		}
	}
}

// ownerOf is the id that owns a partition, -1 if there is none.
func ownerOf(row *assignment.Partitions, k int) int {
	for id, set := range row.Owners {
		if set.Contains(k) {
			return id
		}
	}
	return -1
}

// locksAlone reports whether a planner had to see that the process has the id, and that no other pod locks the partition.
func (j *Judge) locksAlone(owner *server.Version, p *world.Process, id, k int) bool {
	const underWay = 5 * time.Minute // as long as a planner may be held up after its lists
	pod := j.w.Server.Get(object.Pods, p.Pod)
	slots, _ := entries(owner)
	if tied, ever := j.parts.tied[k]; ever && j.w.Now()-tied < underWay {
		return false
	}
	r := j.lockOf(pod)
	mine := r != nil && object.UID(pod.Object) == p.UID && r.ID == id && r.Partitions.Contains(k)
	return mine && world.InWorkload(pod.Object) && !object.Terminating(pod.Object) && j.w.Belongs(pod, owner) && slots[id].names(world.PodKey(p.Pod, p.UID))
}
