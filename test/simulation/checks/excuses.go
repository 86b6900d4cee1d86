package checks

import (
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// These are all reasons for which two processes may act under one id or on one partition, and for which a token may be lower than an
// earlier one. They are what docs/protocol.md assumes:
//
//	A2  Somebody deleted a pod by force, or declared it dead, while its process ran.
//	A3  Somebody changed or removed a pod's receipt or its labels. This counts until its process has written a receipt again.
//
// Between two processes in strict mode there is no excuse.
func (j *Judge) excused(p, q *world.Process) bool {
	return (j.exposed(p) || j.exposed(q)) && (p.FenceAfter == 0 || q.FenceAfter == 0)
}

// exposed reports whether others may not know what a process's pod locks.
func (j *Judge) exposed(p *world.Process) bool {
	return j.w.Forced(p) || j.changed[world.PodKey(p.Pod, p.UID)]
}

// isGhost reports whether nothing is promised for a process any more (A2).
func (j *Judge) isGhost(p *world.Process) bool { return p.FenceAfter == 0 && j.w.Forced(p) }

// noteChanged takes in who changed a pod's receipt or its labels. by is nil for somebody else than its process.
func (j *Judge) noteChanged(v *server.Version, by *world.Process) {
	j.changed[world.PodKey(v.Name, object.UID(v.Object))] = by == nil || !shows(v)
}
