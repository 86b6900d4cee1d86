package checks

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// ended is the last pod that was seen to end after it had an id, and when that was.
type ended struct {
	uid string
	at  time.Duration
}

// noteEnded notes which id comes free when a pod ends. An id from which another writer took the lock is none that the controller knows.
func (j *Judge) noteEnded(v *server.Version) {
	if v.Kind.Resource != object.Pods || v.Exists() && !object.Ended(v.Object) {
		return
	}
	uid := object.UID(cmpObject(v))
	if is, had := j.idOf[uid]; had && j.ends[is].uid != uid && !j.changed[world.PodKey(v.Name, uid)] {
		j.ends[is] = ended{uid, j.w.Now()}
	}
}

// noteRest notes for how long another writer kept ids from resting.
func (j *Judge) noteRest(v *server.Version) {
	was := j.unrested
	if j.unrested = object.Annotation(v.Object, assignment.ReuseKey) == ""; was || j.unrested {
		j.restless = j.w.Now()
	}
}

// checkReuse reports a program of a gated pod that begins under an id that should still rest.
func (j *Judge) checkReuse(p *world.Process, b identity.Identity) {
	last, owner := j.ends[thing{b.Owner, b.ID}], j.w.Owner()
	if !p.Assigned || last.uid == "" || last.uid == p.UID || owner == nil || object.Annotation(owner.Object, assignment.ReuseKey) == "" {
		return
	}
	if j.restless > last.at { // it was back before the program began
		return
	}
	if had, before := j.idOf[p.UID]; before && had == (thing{b.Owner, b.ID}) {
		return // a container started again
	}
	if rested := j.w.Now() - last.at; rested < j.w.Profile.ReuseAfter {
		j.reportf(reuse, "%s begins under id %d, %s after its last pod ended", p.ID, b.ID, rested)
	}
}

// checkNumber reports a program that begins without the number for which its pod asks.
func (j *Judge) checkNumber(p *world.Process) {
	pod := j.w.Server.Get(object.Pods, p.Pod)
	if pod == nil || object.UID(pod.Object) != p.UID || j.changed[world.PodKey(p.Pod, p.UID)] {
		return
	}
	if first := object.Annotation(pod.Object, assignment.FirstNumberKey); first != "" && p.Environment.Number == 0 {
		j.reportf(shown, "%s asks for numbers from %s and begins without one", p.ID, first)
	}
}
