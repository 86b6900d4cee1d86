package inspect

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// rolls reports whether the owner replaces its pods by revisions.
func (f *facts) rolls() bool { return f.owner.Rolls() && f.owner.Count > 0 }

// frozenSets finds that the controller waits until all ReplicaSets of a Deployment have the same owner.
func frozenSets(f *facts) []about {
	return some(f.frozen != "", about{with: words{theOther: f.frozen}})
}

// stuckUpdates finds a rolling update that cannot continue by itself.
func stuckUpdates(f *facts) []about {
	waiter, also := f.stuck(), "For later updates, "
	if f.keepsAll() {
		also = "Or "
	}
	return some(waiter != "", about{pod: waiter, with: words{"pods": few(f.keepers()), "out": also + f.wayOut()}})
}

// overdueUpdates finds a rolling update that has passed its progress deadline.
func overdueUpdates(f *facts) []about {
	return some(f.rolls() && f.rollout.overdue != "" && f.stuck() == "", about{with: words{"message": f.rollout.overdue}})
}

// updatesThatWouldStick finds that a rolling update would be stuck, because it may not stop a pod before a new one is Ready.
func updatesThatWouldStick(f *facts) []about {
	keep := f.keepers()
	return some(f.smooth() && len(keep) > 0 && f.owner.Rollout.Blocks(), about{with: words{"pods": few(keep), "out": f.wayOut()}})
}

// updatesThatWouldStickBelow finds the same for fewer replicas.
func updatesThatWouldStickBelow(f *facts) []about {
	keep, below := f.keepers(), f.owner.Rollout.BlocksBelow
	would := f.smooth() && len(keep) > 0 && !f.owner.Rollout.Blocks() && f.owner.Count >= below && below > 1
	return some(would, about{with: words{"pods": few(keep), "out": f.wayOut(), "below": number(below)}})
}

// smooth reports whether no rolling update is stuck or overdue.
func (f *facts) smooth() bool { return f.rolls() && f.rollout.overdue == "" && f.stuck() == "" }

// wayOut explains what to do about a rolling update whose old pods do not hand over.
func (f *facts) wayOut() string {
	if f.keepsAll() {
		return "remove annotation " + assignment.EvictKey + ", so that the controller removes old pods one at a time; for pods that idalloc runs in, " + allocator.WayOut
	}
	return allocator.WayOut
}

// keepers returns the names of the pods that do not hand their slots over.
func (f *facts) keepers() []string {
	var keep []string
	for _, lockers := range f.lockers {
		for _, p := range lockers {
			if !p.Receipt.HandsOver && !p.Terminating && !f.gives(p) {
				keep = append(keep, p.Name)
			}
		}
	}
	slices.Sort(keep)
	return keep
}

// stuck returns a pod that waits for ever in a rolling update that cannot continue by itself, or "". The update is stuck if all of this is true:
//
//   - A pod of the current revision waits, and that revision runs idalloc.
//   - Every id belongs to a live pod that does not hand it over to the waiter.
//   - At least one of these pods is of an older revision.
//   - Kubernetes ends no pod.
//
// A Terminating pod, and a pod without a receipt so far, may still change something. Pods of a revision without idalloc may become Ready without an id.
func (f *facts) stuck() (waiter string) {
	if !f.rolls() || !f.owner.Rollout.Blocks() || f.endsAnOldPod() || !f.signs[f.rollout.current] {
		return ""
	}
	for _, p := range f.waiters {
		if p.controller != "" && p.revision == f.rollout.current {
			waiter = p.Name
			break
		}
	}
	older := false
	for _, name := range f.lasting {
		p := f.pods[name]
		old := p.revision != f.rollout.current
		if old && (p.Receipt.HandsOver || f.gives(p)) {
			return ""
		}
		older = older || old && p.Owned
	}
	if !older {
		return ""
	}
	return waiter
}

// endsAnOldPod reports whether Kubernetes ends a pod of an older revision, now or when the pods of the current revision that have an id are available. With
// maxUnavailable 0, it does so if N other pods are left then.
func (f *facts) endsAnOldPod() bool {
	stay := 0
	for name, p := range f.pods {
		_, entry := f.state.Slots.Of(name)
		if p.Owned && p.live() && !p.Terminating && (p.revision != f.rollout.current || p.ready || entry) {
			stay++
		}
	}
	return stay > f.owner.Count
}
