package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

const (
	// opens is how long a pod may stay behind its gate although nothing is in its way: the controller tries what failed again after up to 30 s.
	opens = soonEnough + 30*time.Second
	// elects is how many requests of the election a controller makes in a minute: one each two seconds.
	elects = 31
	// mostOfController is how many requests a controller makes in any minute at most, for a few pods.
	mostOfController = 1200
)

// mayWrite reports whether a process writes the pod's receipt: the controller, if the label says so, and the pod's own otherwise.
func mayWrite(p *world.Process, pod *server.Version) bool {
	if world.IsAssigned(pod.Object) {
		return p.Controls
	}
	return p.Pod == pod.Name && p.UID == object.UID(pod.Object)
}

// checkBegun reports a controller that takes its lock from a pod that has begun: its program runs. lost says that the receipt was changed. A pod
// may lock the same slot of another owner, which it has now.
func (j *Judge) checkBegun(v *server.Version, lost bool) {
	before, err := receipt.Parse(wordsOf(v.Before).receipt)
	now, failed := receipt.Parse(wordsOf(v).receipt)
	withdrawn := err == nil && before.Begun && before.UID == object.UID(v.Object) && (failed != nil || now.State != receipt.Locks || now.Share.ID != before.Share.ID)
	if !lost && world.IsAssigned(v.Object) && withdrawn {
		j.reportf(receipts, "%s takes the lock of slot %d from %s, which has begun", j.w.Serving.ID, before.Share.ID, v.Name)
	}
}

// checkEnvironment reports a program of a pod of the controller that begins without an id, and one whose files name another id than its environment.
func (j *Judge) checkEnvironment(p *world.Process) {
	switch {
	case !p.Assigned || !p.Launched || !p.Runs():
		return
	case p.Environment == nil:
		j.reportf(shown, "%s begins without an id", p.ID)
		return
	case p.File != nil && p.File.ID != p.Environment.ID:
		j.reportf(shown, "%s has id %d in its environment and %d in its files", p.ID, p.Environment.ID, p.File.ID)
	case p.File != nil && p.File.Number != p.Environment.Number:
		j.reportf(shown, "%s has number %d in its environment and %d in its files", p.ID, p.Environment.Number, p.File.Number)
	}
	j.checkNumber(p)
}

// checkRemoved reports a pod that the controller deletes without asking a budget although it is available and no other pod has its id.
func (j *Judge) checkRemoved(v *server.Version) {
	p := j.w.Serving
	if v.Kind.Resource != object.Pods || !v.Exists() || !v.Before.Exists() || p == nil || !p.Controls || j.w.Evicting {
		return
	}
	if !object.Terminating(v.Object) || object.Terminating(v.Before.Object) || object.Text(v.Object, "status", "ready") != "True" {
		return
	}
	r := j.receipt(v)
	if r.State != receipt.Locks || len(j.lockers(r.Share.ID)) > 1 || j.changed[world.PodKey(v.Name, object.UID(v.Object))] {
		return
	}
	j.reportf(moves, "%s deletes %s, which is available, and asks no budget", p.ID, v.Name)
}

// staysAbove reports whether a pod has an id above the count for as long as it lives. The controller removes no pod of a
// Job for that: it would count as failed.
func (j *Judge) staysAbove(p *world.Process, id, count int) bool {
	return p.Assigned && id >= count && j.w.Profile.Resource == object.Jobs
}

// isWaiting reports whether a pod of the owner is behind its gate, and may leave it.
func (j *Judge) isWaiting(v, owner *server.Version) bool {
	return world.IsAssigned(v.Object) && world.IsGated(v) && !object.Terminating(v.Object) && !object.Ended(v.Object) && world.InWorkload(v.Object) && j.w.Belongs(v, owner)
}

// mayHave reports whether a pod may have a slot: a StatefulSet's has its own alone, and so has that of a Job with indexes.
func (j *Judge) mayHave(v *server.Version, id int) bool {
	switch {
	case !j.w.Profile.HasOrdinals():
		return true
	case j.w.Profile.Indexed:
		return object.Annotation(v.Object, kinds.CompletionIndexLabel) == strconv.Itoa(id)
	}
	return strings.HasSuffix(v.Name, "-"+strconv.Itoa(id))
}

// gatedBeside returns a pod behind its gate beside a slot that no pod has, empty if there is none.
func (j *Judge) gatedBeside(held map[int]bool, owner *server.Version) string {
	slots := world.Slots(owner)
	for _, v := range j.w.Server.Objects(object.Pods) {
		if !j.isWaiting(v, owner) {
			continue
		}
		for id := range owner.Count() {
			if !held[id] && !j.isKept(id, slots[id]) && j.mayHave(v, id) && !j.begun(id) {
				return fmt.Sprintf("no pod acts under id %d, and %s is behind its gate", id, v.Name)
			}
		}
	}
	return ""
}

// begun reports whether a pod that has begun has the slot: its program may have ended.
func (j *Judge) begun(id int) bool {
	return slices.ContainsFunc(j.lockers(id), func(v *server.Version) bool { return j.receipt(v).Begun })
}

// controlled reports whether the controllers have to do with the owner, and hear what becomes of it.
func (g *progress) controlled() bool {
	return !g.deaf() && slices.ContainsFunc(g.w.Server.Objects(object.Pods), func(v *server.Version) bool {
		central := world.IsAssigned(v.Object) || world.IsAgent(v.Object)
		return central && !object.Ended(v.Object) && world.InWorkload(v.Object) && g.w.Belongs(v, g.owner)
	})
}

// isBehind reports whether a pod of an older revision leaves free slots to one of the current revision that takes for itself and waits.
func (g *progress) isBehind(v *server.Version) bool {
	now := world.Template(g.owner.Object)
	return world.MadeFrom(v) != now && slices.ContainsFunc(g.w.Server.Objects(object.Pods), func(other *server.Version) bool {
		r := g.judge.receipt(other)
		return world.MadeFrom(other) == now && !world.IsAssigned(other.Object) && !object.Ended(other.Object) && r.State != receipt.None && r.State != receipt.Locks
	})
}

// deaf reports whether news for a controller are minutes late.
func (g *progress) deaf() bool {
	return slices.ContainsFunc(g.w.Running(), func(p *world.Process) bool { return p.Controls && g.w.IsDeaf(p, soonEnough) })
}

// gated is what keeps a pod behind its gate for no reason.
func (g *progress) gated(v *server.Version) map[string]time.Duration {
	if !g.judge.isWaiting(v, g.owner) || !g.agrees(g.record) || g.deaf() {
		return nil
	}
	n := g.owner.Count()
	own := g.judge.receipt(v)
	id, named := g.record.State.Slots.Of(v.Name)
	if own.State == receipt.Locks {
		id, named = own.Share.ID, true
	}
	out := map[string]time.Duration{}
	switch {
	case named && (id >= n || len(g.judge.lockers(id)) > 1 || len(g.judge.lockers(id)) == 1 && own.State != receipt.Locks):
	case named:
		out[fmt.Sprintf("is named for slot %d and stays behind its gate", id)] = opens + g.w.Profile.ReuseAfter
	case g.isBehind(v):
	default:
		for _, id := range g.free(n) {
			if g.judge.mayHave(v, id) {
				out[fmt.Sprintf("is behind its gate while slot %d is free", id)] = opens + g.w.Profile.ReuseAfter
			}
		}
	}
	return out
}
