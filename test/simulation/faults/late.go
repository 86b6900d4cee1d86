package faults

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// locksMore returns the partitions that c, a pod's receipt, locks beside those that the pod locks already.
func locksMore(w *world.World, c *world.Call) placement.Set {
	v := w.Server.Get(object.Pods, c.Name)
	if w.Profile.Partitions == 0 || v == nil {
		return placement.Set{}
	}
	before := lockedBy(object.Annotation(v.Object, assignment.ReceiptKey))
	return lockedBy(patched(c.Body, assignment.ReceiptKey)).Minus(before)
}

// lockedBy are the partitions that a receipt locks.
func lockedBy(receipt string) placement.Set {
	r, err := assignment.ParseReceipt(receipt, assignment.AnyTime())
	if err != nil || r.Partitions == nil {
		return placement.Set{}
	}
	return *r.Partitions
}

// lockLate suspends a pod before it locks partitions until another one works on some of them, and once more after that receipt, while
// somebody damages the map again.
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
		w.TrapFor(5*time.Second, func(c *world.Call) bool { return c.Process == p && c.Verb == "get" && c.Resource == w.Profile.Resource }, func(*world.Call) bool {
			w.After(d.Tail(100*time.Millisecond), func() { damage(w, d) })
			w.Suspend(p, d.Span(0, 10*time.Second))
			return false
		})
		p.GoOn()
	})
}

// worked reports whether somebody but the process works on one of the partitions.
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
