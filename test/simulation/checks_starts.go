package simulation

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// waited is how long a pod that runs must have been without a slot, so that every planner knows of it.
const waited = 45 * time.Second

// noteSlotless keeps since when each process that runs has neither an id nor an entry.
func (g *progress) noteSlotless() {
	held := map[string]bool{}
	if v := g.w.owner(); v != nil {
		for _, name := range slots(object.Annotation(v.Object, assignment.DefaultKey)) {
			held[name] = true
		}
	}
	now := map[*process]time.Duration{}
	for _, p := range g.w.running() {
		if !p.launched || p.belief() != nil || held[p.pod] {
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
	n := object.Number(v.Object, "spec", v.Kind.Count)
	before, after := slots(object.Annotation(v.Before.Object, assignment.DefaultKey)), slots(object.Annotation(v.Object, assignment.DefaultKey))
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
		got := g.w.server.Get(object.Pods, name)
		if before[id] == name || got == nil || !g.w.neverRan(got) {
			continue
		}
		for p, since := range g.slotless {
			pod := g.w.server.Get(object.Pods, p.pod)
			if g.w.Now()-since < waited || served[p.pod] || pod == nil || object.UID(pod.Object) != p.uid || object.Terminating(pod.Object) || !inWorkload(pod.Object) {
				continue
			}
			g.judge.reportf(prompt, "slot %d goes to %s, which never ran, and %s waits since %s", id, name, p.id, since.Round(time.Second))
		}
	}
}
