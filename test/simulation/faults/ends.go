package faults

import (
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// spend has the program of some pod end for good, while the pod lives.
func spend(w *world.World, v *server.Version, d *dice.Dice) { w.Spend(v, d.Chance(0.6)) }

// spendEarly has the program of a pod be told to end, for good, while the first write of its receipt, or of its entry, is under way.
func spendEarly(w *world.World, f Fault, d *dice.Dice) {
	stir(w, f, d)
	w.TrapFor(f.Lasts, func(c *world.Call) bool {
		is, _ := takes(w, c)
		return is || gets(w, c) >= 0
	}, func(c *world.Call) bool {
		long := d.Tail(50 * time.Millisecond)
		w.After(d.Tail(5*time.Millisecond), func() { spendOf(w, c.Process) })
		c.Served = func(server.Answer) time.Duration { return long }
		return false
	})
}

// spendOf has the program of a process's pod be told to end, for good.
func spendOf(w *world.World, p *world.Process) {
	if v := w.Server.Get(object.Pods, p.Pod); v != nil && object.UID(v.Object) == p.UID && !w.Quiet {
		w.Spend(v, true)
	}
}

// spendInRenewal has the program of a pod be told to end, for good, while a renewal of its Lease is under way. Its answer is late, or it
// arrives late, or not at all.
func spendInRenewal(w *world.World, f Fault, d *dice.Dice) {
	w.TrapFor(f.Lasts, func(c *world.Call) bool {
		return c.Verb == server.VerbUpdate && c.Resource == object.Leases && c.Process.Belief() != nil
	}, func(c *world.Call) bool {
		w.After(d.Tail(10*time.Millisecond), func() { spendOf(w, c.Process) })
		switch late := d.Span(0, 3*time.Second); d.Below(3) {
		case 0:
			c.Served = func(server.Answer) time.Duration { return late }
		case 1:
			w.After(late, func() { w.Arrive(c, false) })
			return true
		}
		return false
	})
}

// lockAndEnd has a pod lock the slot of another one, and end for good before it finds that out. Then the process of the other one is started again.
func lockAndEnd(w *world.World, f Fault, d *dice.Dice) {
	holder := first(w)
	if holder == nil {
		return
	}
	id := holder.Belief().ID
	stir(w, f, d)
	w.After(d.Span(0, 10*time.Second), func() { propose(w, id, holder.Pod, d) })
	w.TrapFor(f.Lasts, func(c *world.Call) bool {
		_, next, _ := locks(w, c)
		is, _ := takes(w, c)
		return is && c.Process.Pod != holder.Pod && next.Share.ID == id
	}, func(c *world.Call) bool {
		q := c.Process
		c.Served = func(server.Answer) time.Duration {
			if v := w.Server.Get(object.Pods, q.Pod); v != nil {
				w.Spend(v, false)
			}
			w.After(d.Span(0, 3*time.Second), func() {
				if holder.Runs() && !w.Quiet {
					w.Kill(holder)
				}
			})
			return 0
		}
		return false
	})
}

// resumeLate cuts a strict pod off, and its kubelet does not hear that the pod is deleted. When another one has its slot, that one is deleted, and
// the first, or its next process, resumes.
func resumeLate(w *world.World, f Fault, d *dice.Dice) {
	var p *world.Process
	for _, other := range dice.Sample(d, w.Running(), 9) {
		if b := other.Belief(); b != nil && other.FenceAfter > 0 && !other.Node.Lost && !other.Cut {
			p = other
			break
		}
	}
	if p == nil {
		return
	}
	id, n := p.Belief().ID, p.Node
	n.Deaf, p.Cut = true, true
	w.Server.DeletePod(p.Pod, w.Profile.Grace)
	w.When(w.Profile.Grace+3*w.Profile.FenceAfter+time.Minute, d, func() bool { return acts(w, id, p) != nil }, func() {
		other := acts(w, id, p)
		if again := d.Chance(0.6); again && p.Runs() && !w.Quiet {
			w.Kill(p)
		}
		if other == nil || w.Quiet {
			w.Reconnect(p)
			n.Deaf = false
			w.SyncNode(n)
			return
		}
		w.After(d.Span(0, 15*time.Second), func() {
			w.Server.DeletePod(other.Pod, w.Profile.Grace)
			w.When(20*time.Second, d, func() bool { return other.Belief() == nil }, func() { w.Reconnect(p) })
		})
		w.After(f.Lasts, func() {
			w.Reconnect(p)
			n.Deaf = false
			w.SyncNode(n)
		})
	})
}

// hang has work on some partitions not stop for a while when it is told to, and partitions move meanwhile.
func hang(w *world.World, f Fault, d *dice.Dice) {
	for k := range w.Profile.Partitions {
		if d.Chance(0.4) {
			w.Hangs[k] = true
			w.After(f.Lasts, func() { delete(w.Hangs, k) })
		}
	}
	afterWork(w, f, d, func(worker *world.Process) { movePartitions(w, f, d, worker) })
}
