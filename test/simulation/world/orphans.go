package world

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
)

// orphan is a write that is under way although its process was killed. It arrives when the pod's next process has come to its nth
// request, or after a while.
type orphan struct {
	call *Call
	left int
}

// orphan kills the process of a write that is under way.
func (w *World) orphan(c *Call) {
	w.Faults["orphaned write"]++
	o := &orphan{call: c, left: c.Dice.Between(1, 6)}
	w.orphans = append(w.orphans, o)
	w.After(c.Dice.Span(5*time.Second, time.Minute), func() { w.arriveOrphan(o) })
	w.Kill(c.Process)
}

// arriveOrphan has a write arrive, once.
func (w *World) arriveOrphan(o *orphan) {
	if i := slices.Index(w.orphans, o); i >= 0 {
		w.orphans = slices.Delete(w.orphans, i, i+1)
		w.Arrive(o.call, false)
	}
}

// meetOrphans is told that a process is about to send a request. A write of the process before it may arrive now. Then the process may
// stand still until others have heard of that, and requests of one kind are slow for a while, from any process.
func (w *World) meetOrphans(p *Process, d *dice.Dice) {
	for _, o := range slices.Clone(w.orphans) {
		if by := o.call.Process; by == p || by.Pod != p.Pod || by.UID != p.UID {
			continue
		}
		if o.left--; o.left > 0 {
			continue
		}
		w.arriveOrphan(o)
		if d = dice.Derive(d.Next(), "orphan"); w.Quiet {
			continue
		}
		slow := HoldUp{Chance: d.Float(), Steps: 1 << uint(d.Below(KindsOfSteps))}
		w.Disturb(d.Span(time.Second, 20*time.Second), func(n *Network) { n.HoldUp = slow })
		if d.Chance(0.7) && !p.frozen {
			p.Freeze()
			w.until(p, d, p.GoOn)
		}
	}
}
