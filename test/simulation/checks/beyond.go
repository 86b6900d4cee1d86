package checks

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// beyond is what goes beyond assumption A4 of docs/protocol.md. Faults cannot keep to it, because it depends on what comes later.
type beyond struct {
	// ungiven are the pods, by key, whose receipt somebody removed while they gave their slot, with the process that ran then. The write
	// that takes the entry out may be under way.
	ungiven map[string]*world.Process
	// ghosts are the processes that act under a token beyond the assumption.
	ghosts map[*world.Process]int64
}

func newBeyond() beyond {
	return beyond{ungiven: map[string]*world.Process{}, ghosts: map[*world.Process]int64{}}
}

// isGhost reports whether nothing is promised for what a process acts under.
func (j *Judge) isGhost(p *world.Process) bool {
	if j.w.IsGhost(p) {
		return true
	}
	token, beyond := j.beyond.ghosts[p]
	b := p.Belief()
	return beyond && (b == nil || b.Epoch == token)
}

// noteUngiven takes in whether somebody removed the receipt of a pod that gives its slot, perhaps before the map has lost the entry.
func (j *Judge) noteUngiven(v *server.Version) {
	if v.Kind.Resource != object.Pods || j.w.Serving != nil || !v.Exists() || !v.Before.Exists() || !gaveUp(j.receipt(v.Before)) || gaveUp(j.receipt(v)) {
		return
	}
	pod := world.PodKey(v.Name, object.UID(v.Object))
	j.beyond.ungiven[pod] = j.running(pod)
}

// noteWritten takes in a write of idalloc on the owner: an earlier one that is under way fails its tests now.
func (j *Judge) noteWritten() {
	if j.w.Serving != nil {
		clear(j.beyond.ungiven)
	}
}

// noteNext notes a process that begins to act under the slot that an earlier process of its pod gave: nothing tells it so.
func (j *Judge) noteNext(p *world.Process, token int64) {
	if gave, ungiven := j.beyond.ungiven[world.PodKey(p.Pod, p.UID)]; ungiven && gave != p {
		j.beyond.ghosts[p] = token
	}
}

// noteVanished notes strict processes whose pods were deleted by force, when somebody restores a map: the last holders of ids of which
// nothing tells (Not covered in docs/protocol.md). A receipt of another pod that came late names the id, or nothing says any more for how
// long such a process may go on.
func (j *Judge) noteVanished(owner *server.Version) {
	if j.w.Profile.FenceAfter == 0 || j.w.Serving == nil {
		return
	}
	if _, clean := entries(owner.Before); clean {
		return
	}
	slots, _ := entries(owner)
	known := j.knownFence(owner.Before)
	for id, last := range j.byID {
		if last.p.FenceAfter == 0 || j.exists(last.p.Pod, last.p.UID) {
			continue
		}
		other := j.receiptOf(j.w.Server.Get(object.Pods, slots[id].name))
		late := other.Locks() && other.ID == id && other.Epoch < last.token
		if late || known < last.p.FenceAfter {
			j.beyond.ghosts[last.p] = last.token
		}
	}
}

// knownFence is the longest fence-after of which a planner that restores a map knows: its own, a live receipt's, or what idalloc alone wrote
// on the owner.
func (j *Judge) knownFence(damaged *server.Version) time.Duration {
	known := j.w.Serving.FenceAfter
	if damaged.Exists() && damaged.Manages(assignment.FieldManager, assignment.FenceAfterKey) {
		if f, err := time.ParseDuration(object.Annotation(damaged.Object, assignment.FenceAfterKey)); err == nil {
			known = max(known, f)
		}
	}
	for _, v := range j.w.Server.Objects(object.Pods) {
		if r := j.receiptOf(v); r != nil && !object.Ended(v.Object) {
			known = max(known, r.FenceAfter)
		}
	}
	return known
}

// running is the process of a pod that runs and may have read what its receipt says, nil if there is none.
func (j *Judge) running(pod string) *world.Process {
	for _, p := range j.w.Running() {
		if p.Calls > 0 && world.PodKey(p.Pod, p.UID) == pod {
			return p
		}
	}
	return nil
}

// exists reports whether a pod is there under its UID.
func (j *Judge) exists(pod, uid string) bool {
	v := j.w.Server.Get(object.Pods, pod)
	return v.Exists() && object.UID(v.Object) == uid
}

// receiptOf is that of a pod, nil if there is no pod or no receipt that can be read.
func (j *Judge) receiptOf(pod *server.Version) *assignment.Receipt {
	if !pod.Exists() {
		return nil
	}
	return j.receiptAt(pod, j.w.Wall().Add(j.w.Profile.Skew+j.w.Profile.Ahead))
}

func gaveUp(r *assignment.Receipt) bool { return r != nil && r.GaveUp }
