package faults

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// lockLate suspends a pod before it locks partitions until another one works on some of them, and once more when it lists after that, while
// another client damages the map again.
func lockLate(w *world.World, p *world.Process, more placement.Set, d *dice.Dice) {
	p.Freeze()
	if d.Chance(0.5) {
		w.After(d.Tail(time.Second), func() {
			if !w.Quiet {
				wish(w, d)
			}
		})
	}
	w.When(d.Span(10*time.Second, time.Minute), d, func() bool { return worked(w, more, p) }, func() {
		if w.Quiet {
			p.GoOn()
			return
		}
		w.TrapFor(5*time.Second, func(c *world.Call) bool { return c.Process == p && c.Verb == "list" }, func(*world.Call) bool {
			w.After(d.Tail(100*time.Millisecond), func() { damage(w, d) })
			w.Suspend(p, d.Span(0, 10*time.Second))
			return false
		})
		p.GoOn()
	})
}

// worked reports whether another process works on one of the partitions.
func worked(w *world.World, set placement.Set, but *world.Process) bool {
	for _, p := range w.Running() {
		for k := range p.Working() {
			if p != but && set.Contains(k) {
				return true
			}
		}
	}
	return false
}

// afterWork runs do when a process works on partitions.
func afterWork(w *world.World, f Fault, d *dice.Dice, do func(worker *world.Process)) {
	var worker *world.Process
	works := func() bool {
		for _, p := range w.Running() {
			if worker = p; len(p.Working()) > 0 {
				return true
			}
		}
		return false
	}
	w.When(f.Lasts, d, works, func() {
		if !w.Quiet && works() {
			do(worker)
		}
	})
}

// movePartitions has the worker lose partitions to others, and get them back now and then.
func movePartitions(w *world.World, f Fault, d *dice.Dice, worker *world.Process) {
	owner := w.Owner()
	switch {
	case owner == nil:
	case w.Profile.Strategy == placement.NameExternal && d.Chance(0.8):
		was, next := object.Annotation(owner.Object, assignment.PartitionTargetKey), target(d)
		say := func(text string) {
			if !w.Quiet {
				w.ChangeOwner(server.Writer{Manager: annotate}, func(o object.Object) {
					object.SetText(o, "annotations", assignment.PartitionTargetKey, text)
				})
			}
		}
		say(next)
		w.After(d.Tail(time.Second), func() { say(was) })
		w.After(d.Span(time.Second, 20*time.Second), func() { say(next) })
	case d.Chance(0.3):
		w.Pause(worker.Pod, true)
		w.After(f.Lasts, func() { w.Pause(worker.Pod, false) })
	case d.Chance(0.7):
		w.Scale(owner, min(owner.Count()+d.Between(1, 2), 6))
	default:
		scaleOwner(w, f, d)
	}
}
