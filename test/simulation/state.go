package simulation

import (
	"slices"

	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// calm reports whether nothing goes wrong at this moment with the server, the network and the machines.
func (w *world) calm() bool {
	if w.net != (network{slower: 1}) || w.down || w.server.Admission || len(w.server.Refusals) > 0 || len(w.waiting) > 0 {
		return false
	}
	for _, n := range w.nodes {
		if n.cut || n.down || n.frozen || n.mute {
			return false
		}
	}
	for _, p := range w.running() {
		if p.frozen || p.cut {
			return false
		}
	}
	return true
}

// newsUnderWay reports whether an event for a process that runs is still to come.
func (w *world) newsUnderWay() bool {
	return slices.ContainsFunc(w.running(), func(p *process) bool { return p.news > w.Now() })
}

// isDeaf reports whether an event for the process is still to be minutes late.
func (w *world) isDeaf(p *process) bool { return p.news > w.Now()+soonEnough }

// waits reports whether the process may have an id and has none.
func (w *world) waits(p *process) bool {
	v := w.server.Get(object.Pods, p.pod)
	k := w.pods[podKey(p.pod, p.uid)]
	return v != nil && k != nil && object.UID(v.Object) == p.uid && !object.Terminating(v.Object) && inWorkload(v.Object) &&
		!k.stopping && !k.evicted && p.launched && p.belief() == nil
}

// belongs reports whether the owner controls an object, or controls what does.
func (w *world) belongs(v, owner *server.Version) bool {
	by := object.Controller(v.Object)
	return by == object.UID(owner.Object) || slices.ContainsFunc(w.server.Objects(object.ReplicaSets), func(rs *server.Version) bool {
		return object.UID(rs.Object) == by && w.belongs(rs, owner)
	})
}

// livePods counts the owner's pods that are neither dead nor on their way out.
func (w *world) livePods() int {
	n := 0
	for _, v := range w.server.Objects(object.Pods) {
		if !object.Ended(v.Object) {
			n++
		}
	}
	return n
}

// neverRan reports whether the kubelet knows of a pod and has not started it.
func (w *world) neverRan(v *server.Version) bool {
	k := w.pods[podKey(v.Name, object.UID(v.Object))]
	return k != nil && k.runs == 0
}
