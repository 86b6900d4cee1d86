package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// neverStart has some of the pods that are made meanwhile not start at all, until somebody repairs them in the end: no node has room for them,
// or a volume does not exist.
func neverStart(w *world, f Fault, d *dice.Dice) {
	w.stuck = 0.3 + 0.7*d.Float()
	if w.profile.Rolls() && d.Chance(0.7) {
		rollout(w, f, d)
	}
	w.After(f.Lasts, func() { w.stuck = 0 })
}

// startAll has everything start that did not, and work.
func (w *world) startAll() {
	w.stuck = 0
	clear(w.broken)
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if k := w.pods[key]; k.stuck && !k.gone {
			k.stuck = false
			w.syncSoon(k)
		}
	}
}

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
		if before[id] == name || got == nil {
			continue
		}
		if k := g.w.pods[podKey(name, object.UID(got.Object))]; k == nil || k.runs > 0 {
			continue
		}
		for p, since := range g.slotless {
			pod := g.w.server.Get(object.Pods, p.pod)
			if g.w.Now()-since < waited || served[p.pod] || pod == nil || object.UID(pod.Object) != p.uid || object.Terminating(pod.Object) || !inWorkload(pod.Object) {
				continue
			}
			g.w.judge.reportf(prompt, "slot %d goes to %s, which never ran, and %s waits since %s", id, name, p.id, since.Round(time.Second))
		}
	}
}

// errBroken is how the program of a broken revision ends.
var errBroken = errors.New("the program is broken")

// brokenRollout begins a revision whose programs end by themselves soon after they got an id, until somebody repairs what they need.
func brokenRollout(w *world, f Fault, d *dice.Dice) {
	rollout(w, f, d)
	if v := w.owner(); v != nil {
		w.broken[template(v.Object)] = true
	}
}

// breaks says after how long the program ends by itself under an id, and whether its whole process dies with it.
func (p *process) breaks(id identity.Identity) (after time.Duration, dies, broken bool) {
	v := p.w.server.Get(object.Pods, p.pod)
	if v == nil || !p.w.broken[object.Number(v.Object, "spec", "version")] {
		return 0, false, false
	}
	d := p.w.dice("break", p.id, strconv.FormatInt(id.Epoch, 10))
	return d.Tail(3 * time.Second), d.Chance(0.3), true
}

// untilBroken blocks until the program ends by itself. It returns false if it was told to stop before, or does not break.
func (p *process) untilBroken(ctx context.Context, id identity.Identity) bool {
	var after time.Duration
	var dies, broken bool
	p.w.Alone(func() { after, dies, broken = p.breaks(id) })
	if !broken {
		return false
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	}
	p.Thawed()
	p.w.Alone(func() { //nolint:contextcheck // the world may start another process after it
		if p.dead {
			return
		}
		p.w.note("break", p.id)
		if dies {
			p.w.kill(p)
			return
		}
		p.stop()
	})
	return true
}
