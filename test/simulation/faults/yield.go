package faults

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// yieldedBy are the partitions that a receipt yields.
func yieldedBy(receipt string) placement.Set {
	r, err := assignment.ParseReceipt(receipt, assignment.AnyTime())
	if err != nil {
		return placement.Set{}
	}
	return r.Yields
}

// yieldsMore reports whether c, a pod's receipt, yields partitions that the pod does not yield yet.
func yieldsMore(w *world.World, c *world.Call) bool {
	if c.Verb != server.VerbPatch || c.Resource != object.Pods || c.Name != c.Process.Pod {
		return false
	}
	v := w.Server.Get(object.Pods, c.Name)
	return v != nil && !yieldedBy(patched(c.Body, assignment.ReceiptKey)).Subset(yieldedBy(object.Annotation(v.Object, assignment.ReceiptKey)))
}

// dividesAnew reports whether c changes who owns which partitions.
func dividesAnew(w *world.World, c *world.Call) bool {
	v := w.Owner()
	next := patched(c.Body, assignment.PartitionOwnersKey)
	return writes(w, c) && v != nil && next != "" && next != object.Annotation(v.Object, assignment.PartitionOwnersKey)
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

// movePartitions has the worker lose partitions to others. Where the user alone says who owns what, back takes that back, and again says
// it once more.
func movePartitions(w *world.World, f Fault, d *dice.Dice, worker *world.Process) (back, again func()) {
	none, owner := func() {}, w.Owner()
	switch {
	case owner == nil:
	case w.Profile.Strategy == placement.NameExternal && d.Chance(0.8):
		was, next := object.Annotation(owner.Object, assignment.PartitionTargetKey), target(d)
		say := func(text string) {
			if !w.Quiet {
				w.ChangeOwner(server.Writer{Manager: "kubectl-annotate"}, func(o object.Object) {
					object.SetText(o, "annotations", assignment.PartitionTargetKey, text)
				})
			}
		}
		say(next)
		return func() { say(was) }, func() { say(next) }
	case d.Chance(0.3):
		w.Pause(worker.Pod, true)
		w.After(f.Lasts, func() { w.Pause(worker.Pod, false) })
	case d.Chance(0.7):
		w.Scale(owner, min(owner.Count()+d.Between(1, 2), 6))
	default:
		scaleOwner(w, f, d)
	}
	return none, none
}

// lateYield kills a process that says that it yields partitions: before that is written, or right after. The others hear of nothing until
// the pod's next process is about to lock. Then they hear of the yield, and that process goes on when one of them is about to give away
// what it saw.
func lateYield(w *world.World, f Fault, d *dice.Dice) {
	afterWork(w, f, d, func(worker *world.Process) {
		back, again := movePartitions(w, f, d, worker)
		w.TrapFor(f.Lasts, func(c *world.Call) bool { return yieldsMore(w, c) }, func(c *world.Call) bool {
			late := d.Chance(0.5)
			endYielding(w, c, late)
			others := freezeBut(w, c.Process.Pod, d)
			back()
			followYield(w, c.Process.Pod, d, func() {
				again()
				if late {
					w.Arrive(c, false)
				}
				for _, p := range others {
					p.GoOn()
				}
			})
			return late
		})
	})
}

// endYielding kills a process that is about to send its receipt, late if that is to arrive later.
func endYielding(w *world.World, c *world.Call, late bool) {
	if late {
		w.Kill(c.Process)
		return
	}
	c.Served = func(server.Answer) time.Duration {
		w.Kill(c.Process)
		return 0
	}
}

// followYield suspends the next process of a pod when it is about to lock, tells the others, and has it go on when one of them is about to
// give something away.
func followYield(w *world.World, pod string, d *dice.Dice, tell func()) {
	next := w.TrapFor(time.Minute, func(c *world.Call) bool { is, _ := takes(w, c); return is && c.Process.Pod == pod }, func(c *world.Call) bool {
		c.Process.Freeze()
		tell()
		holdUntilDivided(w, c.Process, d)
		return false
	})
	w.After(d.Span(15*time.Second, 40*time.Second), func() {
		if w.Drop(next) {
			tell()
		}
	})
}

// holdUntilDivided has a suspended process go on when another one is about to change who owns what. That one is suspended until the first
// one works on partitions.
func holdUntilDivided(w *world.World, first *world.Process, d *dice.Dice) {
	crossed := w.TrapFor(time.Minute, func(c *world.Call) bool { return c.Process != first && dividesAnew(w, c) }, func(c *world.Call) bool {
		c.Process.Freeze()
		first.GoOn()
		w.When(20*time.Second, d, func() bool { return len(first.Working()) > 0 }, c.Process.GoOn)
		return false
	})
	w.After(d.Span(20*time.Second, time.Minute), func() {
		if w.Drop(crossed) {
			first.GoOn()
		}
	})
}

// forgetYield holds a write up that changes who owns what while a pod yields: that pod's own or another one's. Meanwhile the process that
// yields is killed, and somebody removes its receipt. Its next process works on partitions when the write arrives.
func forgetYield(w *world.World, f Fault, d *dice.Dice) {
	afterWork(w, f, d, func(worker *world.Process) {
		movePartitions(w, f, d, worker)
		var yields *world.Process
		w.TrapFor(f.Lasts, func(c *world.Call) bool {
			yields = yielding(w, c.Process)
			return yields != nil && dividesAnew(w, c)
		}, func(c *world.Call) bool {
			pod, own := yields.Pod, yields == c.Process
			w.Kill(yields)
			others := freezeBut(w, pod, d)
			if v := w.Server.Get(object.Pods, pod); v != nil {
				removeReceipt(w, v, d)
			}
			works := func() bool {
				return slices.ContainsFunc(w.Running(), func(p *world.Process) bool { return p.Pod == pod && len(p.Working()) > 0 })
			}
			w.When(30*time.Second, d, works, func() {
				if own {
					w.Arrive(c, false)
				}
				for _, p := range others {
					p.GoOn()
				}
			})
			return own
		})
	})
}

// yielding returns a process whose receipt yields partitions, this one if its does. It is nil if there is none.
func yielding(w *world.World, first *world.Process) (other *world.Process) {
	for _, p := range w.Running() {
		v := w.Server.Get(object.Pods, p.Pod)
		if v == nil || yieldedBy(object.Annotation(v.Object, assignment.ReceiptKey)).Empty() {
			continue
		}
		if other = p; p == first {
			break
		}
	}
	return other
}
