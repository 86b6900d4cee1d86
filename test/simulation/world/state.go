package world

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Calm reports whether nothing goes wrong at this moment with the server, the network and the machines. What is lost is out of the way.
func (w *World) Calm() bool {
	if w.Network != (Network{Slower: 1}) || w.Down || w.Server.Admission || w.Server.Refuses != nil || w.Server.Mutates != nil || w.Server.MutatesLease != nil || len(w.Undoes) > 0 || w.Unauthorized || w.Uncollected || len(w.Server.Refusals) > 0 || len(w.waiting) > 0 || w.Now() < w.kept {
		return false
	}
	if w.controllersDown() {
		return false
	}
	for _, n := range w.Nodes {
		if !n.Lost && (n.Cut || n.Down || n.frozen || n.Mute || n.Deaf) {
			return false
		}
	}
	for _, p := range w.Running() {
		if !p.Node.Lost && (p.frozen || p.Cut) {
			return false
		}
	}
	return true
}

// NewsUnderWay reports whether an event for a process that runs is still to come.
func (w *World) NewsUnderWay() bool {
	return slices.ContainsFunc(w.Running(), func(p *Process) bool { return p.news > w.Now() })
}

// IsDeaf reports whether an event for the process is due only later than that.
func (w *World) IsDeaf(p *Process, than time.Duration) bool { return p.news > w.Now()+than }

// IsCut reports whether the process has no network.
func (w *World) IsCut(p *Process) bool { return p.isCut() }

// Hears reports whether the server sends the process what becomes of the owner, and the process takes it in.
func (w *World) Hears(p *Process) bool {
	return !p.frozen && !p.isCut() && slices.ContainsFunc(w.Server.Streams(), func(st *server.Stream) bool { return st.IsFor(p, w.Profile.Resource) })
}

// Waits reports whether the process may have an id and has none.
func (w *World) Waits(p *Process) bool {
	v := w.Server.Get(object.Pods, p.Pod)
	k := w.pods[PodKey(p.Pod, p.UID)]
	return v != nil && k != nil && object.UID(v.Object) == p.UID && !object.Terminating(v.Object) && InWorkload(v.Object) &&
		!k.stopping && !k.evicted && p.Launched && p.Belief() == nil
}

// Belongs reports whether the owner controls an object, or controls what does.
func (w *World) Belongs(v, owner *server.Version) bool {
	by := object.Controller(v.Object)
	return by == object.UID(owner.Object) || slices.ContainsFunc(w.Server.Objects(object.ReplicaSets), func(rs *server.Version) bool {
		return object.UID(rs.Object) == by && w.Belongs(rs, owner)
	})
}

// LivePods counts the owner's pods that are neither dead nor on their way out.
func (w *World) LivePods() int {
	n := 0
	for _, v := range w.Server.Objects(object.Pods) {
		if !object.Ended(v.Object) {
			n++
		}
	}
	return n
}

// NeverRan reports whether the kubelet knows of a pod and has not started it.
func (w *World) NeverRan(v *server.Version) bool {
	k := w.pods[PodKey(v.Name, object.UID(v.Object))]
	return k != nil && k.runs == 0
}
