package checks

import (
	"time"

	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// waited is how long a pod that runs must have been without a slot, so that every planner knows of it.
const waited = 45 * time.Second

// noteSlotless keeps since when each process that runs has neither an id nor an entry.
func (g *progress) noteSlotless() {
	held := map[string]bool{}
	if v := g.w.Owner(); v != nil {
		for _, name := range world.Slots(v) {
			held[name] = true
		}
	}
	now := map[*world.Process]time.Duration{}
	for _, p := range g.w.Running() {
		if !p.Launched || p.Belief() != nil || held[p.Pod] {
			continue
		}
		now[p] = g.w.Now()
		if since, known := g.slotless[p]; known {
			now[p] = since
		}
	}
	g.slotless = now
}

// checkStarted reports a slot that a write gave to a pod that never ran, while one that runs has waited for long and gets none.
func (g *progress) checkStarted(v *server.Version) {
	if v.Kind.Resource != object.Deployments && v.Kind.Resource != object.ReplicaSets || !v.Before.Exists() || g.w.Now()-g.troubled < aftermath {
		return
	}
	n := v.Count()
	before, after := world.Slots(v.Before), world.Slots(v)
	taken, served := 0, map[string]bool{}
	for id, name := range after {
		served[name] = true
		if id < n {
			taken++
		}
	}
	if taken < n {
		return
	}
	for id, name := range after {
		got := g.w.Server.Get(object.Pods, name)
		if before[id] == name || got == nil || !g.w.NeverRan(got) {
			continue
		}
		for p, since := range g.slotless {
			pod := g.w.Server.Get(object.Pods, p.Pod)
			if g.w.Now()-since < waited || served[p.Pod] || pod == nil || object.UID(pod.Object) != p.UID || object.Terminating(pod.Object) || !world.InWorkload(pod.Object) {
				continue
			}
			g.judge.reportf(prompt, "slot %d goes to %s, which never ran, and %s waits since %s", id, name, p.ID, since.Round(time.Second))
		}
	}
}
