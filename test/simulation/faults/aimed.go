package faults

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// acts reports whether somebody but the process acts under the slot.
func acts(w *world.World, id int, but *world.Process) *world.Process {
	for _, p := range w.Running() {
		if b := p.Belief(); p != but && b != nil && b.ID == id {
			return p
		}
	}
	return nil
}

// stir has something happen for which pods take slots.
func stir(w *world.World, d *dice.Dice) {
	switch d.Below(4) {
	case 0:
		if w.Profile.Rolls() {
			rollout(w, Fault{}, d)
		}
	case 1:
		scaleOwner(w, Fault{}, d)
	case 2:
		toSomePod(deletePod)(w, Fault{}, d)
	}
}

// suspendTaker suspends a pod before it writes the receipt for its slot. Meanwhile somebody damages the map, and another pod
// repairs it.
func suspendTaker(w *world.World, f Fault, d *dice.Dice) {
	stir(w, d)
	w.TrapFor(f.Lasts, func(c *world.Call) bool { is, _ := takes(w, c); return is }, func(c *world.Call) bool {
		p := c.Process
		w.After(d.Tail(100*time.Millisecond), func() { damage(w, d) })
		if more := locksMore(w, c); !more.Empty() && d.Chance(0.7) {
			lockLate(w, p, more, d)
			return false
		}
		if id := noteOf(patched(c.Body, assignment.ReceiptKey)).ID; w.Profile.FenceAfter > 0 && id != nil && d.Chance(0.5) {
			comeLate(w, p, *id, d)
			return false
		}
		w.Suspend(p, d.Span(5*time.Second, 40*time.Second))
		if d.Chance(0.7) {
			w.Relabel(p.Pod)
		}
		return false
	})
}

// comeLate suspends a pod before it writes the receipt for its slot until the slot's next holder has vanished, and once more after that
// receipt.
func comeLate(w *world.World, p *world.Process, id int, d *dice.Dice) {
	p.Freeze()
	w.When(2*time.Minute, d, func() bool { return acts(w, id, p) != nil }, func() {
		other := acts(w, id, p)
		if other == nil || w.Quiet {
			p.GoOn()
			return
		}
		vanish(w, other, d)
		freed := func() bool {
			v := w.Owner()
			return v == nil || world.Slots(v)[id] != other.Pod
		}
		w.When(10*time.Second, d, freed, func() {
			w.TrapFor(5*time.Second, func(c *world.Call) bool { return c.Process == p && c.Verb == "get" && c.Resource == w.Profile.Resource }, func(*world.Call) bool {
				w.Suspend(p, d.Span(0, 5*time.Second))
				return false
			})
			p.GoOn()
		})
	})
}

// vanish deletes a process's pod by force and cuts the process off, while its kubelet does not run.
func vanish(w *world.World, p *world.Process, d *dice.Dice) {
	p.Cut, p.Node.Mute = true, true
	if v := w.Server.Get(object.Pods, p.Pod); v != nil && object.UID(v.Object) == p.UID {
		w.Server.Remove(v)
	}
	w.After(d.Span(2*w.Profile.FenceAfter, 2*w.Profile.FenceAfter+40*time.Second), func() {
		p.Node.Mute = false
		w.SyncNode(p.Node)
		w.Reconnect(p)
	})
}

// comeBack has something happen after which a pod that gave its slot up gets one again.
func comeBack(w *world.World, d *dice.Dice) {
	v := w.Owner()
	if v == nil {
		return
	}
	if first := first(w); first != nil && d.Chance(0.5) {
		// One pod less, and the one that goes has not the highest id.
		w.Server.DeletePod(first.Pod, w.Profile.Grace)
		w.Scale(v, max(1, v.Count()-1))
		return
	}
	if !w.Profile.Rolls() {
		return
	}
	was := world.Template(v.Object)
	rollout(w, Fault{}, d)
	w.After(d.Span(2*time.Second, 30*time.Second), func() {
		if !w.Quiet {
			w.ChangeOwner(server.Writer{Manager: "kubectl-set"}, func(o object.Object) { object.Need(o, "spec", "template")["version"] = int64(was) })
		}
	})
}

// halfGive kills a process that begins to give its slot between the two steps of giving. The others hear of it only when the pod's
// next process is about to take a slot, and that one crosses them.
func halfGive(w *world.World, f Fault, d *dice.Dice) {
	if w.Profile.Rolls() && d.Chance(0.8) {
		rollout(w, f, d)
	} else {
		comeBack(w, d)
	}
	w.TrapFor(f.Lasts+30*time.Second, func(c *world.Call) bool { return releases(w, c) }, func(c *world.Call) bool {
		pod := c.Process.Pod
		c.Served = func(server.Answer) time.Duration {
			w.Kill(c.Process)
			others := freezeBut(w, pod, d)
			tell := func() {
				for _, p := range others {
					p.GoOn()
				}
			}
			again := w.TrapFor(time.Minute, func(c *world.Call) bool { is, _ := takes(w, c); return is && c.Process.Pod == pod }, func(c *world.Call) bool {
				crossWith(w, c.Process, d)
				tell()
				return false
			})
			w.After(d.Span(15*time.Second, 40*time.Second), func() {
				if w.Drop(again) {
					tell()
				}
			})
			return 0
		}
		return false
	})
}

// freezeBut suspends nearly all processes but those of one pod.
func freezeBut(w *world.World, pod string, d *dice.Dice) []*world.Process {
	var frozen []*world.Process
	for _, p := range w.Running() {
		if p.Pod != pod && d.Chance(0.9) {
			p.Freeze()
			frozen = append(frozen, p)
		}
	}
	return frozen
}

// crossWrites suspends a pod before it writes the receipt for its slot, until another pod is about to write the owner. That one is
// suspended, and goes on when the first one has its slot.
func crossWrites(w *world.World, f Fault, d *dice.Dice) {
	returning := d.Chance(0.4)
	if returning {
		comeBack(w, d)
	} else {
		if w.Profile.FenceAfter == 0 && d.Chance(0.5) {
			clearFields(w, f, d)
		}
		stir(w, d)
	}
	w.TrapFor(f.Lasts, func(c *world.Call) bool { is, again := takes(w, c); return is && (again || !returning) }, func(c *world.Call) bool {
		crossWith(w, c.Process, d)
		return false
	})
}

// crossWith suspends first until another pod is about to write the owner, and that one until first has its slot.
func crossWith(w *world.World, first *world.Process, d *dice.Dice) {
	first.Freeze()
	if d.Chance(0.6) {
		w.Relabel(first.Pod)
	}
	if d.Chance(0.2) {
		w.After(d.Tail(100*time.Millisecond), func() { damage(w, d) })
	}
	crossed := w.TrapFor(time.Minute, func(c *world.Call) bool { gets, _ := moves(w, c); return c.Process != first && gets >= 0 }, func(c *world.Call) bool {
		second := c.Process
		second.Freeze()
		first.GoOn()
		w.When(5*time.Second, d, func() bool { return first.Belief() != nil }, func() {
			if !w.Quiet && d.Chance(0.7) {
				w.Suspend(first, d.Span(time.Second, 10*time.Second))
			}
			second.GoOn()
		})
		return false
	})
	w.After(d.Span(20*time.Second, time.Minute), func() {
		if w.Drop(crossed) {
			first.GoOn()
		}
	})
}

// lateGive kills a process that has just sent the map without its entry. The others are suspended, or do not
// hear of it, until the next process of the pod had time to take a slot; then the write arrives.
func lateGive(w *world.World, f Fault, d *dice.Dice) {
	if d.Chance(0.8) {
		rollout(w, f, d)
	} else {
		stir(w, d)
	}
	w.TrapFor(f.Lasts, func(c *world.Call) bool {
		_, lets := moves(w, c)
		v := w.Server.Get(object.Pods, c.Process.Pod)
		return lets >= 0 && v != nil && !object.Terminating(v.Object)
	}, func(c *world.Call) bool {
		_, id := moves(w, c)
		dead := c.Process
		w.Kill(dead)
		others := freezeBut(w, dead.Pod, d)
		successor := func() *world.Process {
			if p := acts(w, id, nil); p != nil && p.Pod == dead.Pod {
				return p
			}
			return nil
		}
		w.When(d.Span(15*time.Second, 45*time.Second), d, func() bool { return successor() != nil }, func() {
			w.Arrive(c, false)
			for _, p := range others {
				p.GoOn()
			}
			if p := successor(); p != nil && !w.Quiet && d.Chance(0.7) {
				w.Suspend(p, d.Span(time.Second, 15*time.Second))
			}
		})
		return true
	})
}

// bringBackState suspends a pod that is about to write the owner, until another one has the slot. Then somebody brings the owner back as
// the suspended pod has read it, old epoch and all, and it goes on.
func bringBackState(w *world.World, f Fault, d *dice.Dice) {
	stir(w, d)
	w.TrapFor(f.Lasts, func(c *world.Call) bool { gets, _ := moves(w, c); return gets >= 0 }, func(c *world.Call) bool {
		p := c.Process
		id, _ := moves(w, c)
		was := object.At(w.Owner().Object, object.Metadata, "annotations")
		p.Freeze()
		if d.Chance(0.8) {
			w.Relabel(p.Pod)
		}
		w.When(d.Span(20*time.Second, time.Minute), d, func() bool { return acts(w, id, p) != nil }, func() {
			if other := acts(w, id, p); other != nil && !w.Quiet && d.Chance(0.5) {
				w.Suspend(other, d.Span(time.Second, 10*time.Second))
			}
			if !w.Quiet {
				putBack(w, was)
			}
			p.GoOn()
		})
		return false
	})
}

// lateContact has the answer to a holder's read of the owner come late. While it is under way the pod is deleted by force and cut
// off from everything else, and its kubelet does not run.
func lateContact(w *world.World, f Fault, d *dice.Dice) {
	w.TrapFor(f.Lasts, func(c *world.Call) bool {
		return c.Verb == "get" && c.Resource == w.Profile.Resource && c.Process.Belief() != nil
	}, func(c *world.Call) bool {
		c.Through = true
		c.Served = func(server.Answer) time.Duration {
			vanish(w, c.Process, d)
			return d.Span(w.Profile.FenceAfter/4, w.Profile.FenceAfter/2)
		}
		return false
	})
}

// lateLoss has a node's kubelet be lost, and suspends a pod that is about to take the entry of a lost pod out. Meanwhile the lost pod's
// process is killed and another one takes the slot again; then that one is cut off.
func lateLoss(w *world.World, f Fault, d *dice.Dice) {
	n := dice.Pick(d, w.Nodes)
	if slices.ContainsFunc(w.Nodes, func(n *world.Node) bool { return n.Lost }) {
		return
	}
	n.Deaf = true
	w.Desert(n)
	w.After(w.Profile.Grace+f.Lasts, func() { w.BringBack(n) })
	var lost *world.Process
	w.TrapFor(w.Profile.Grace+f.Lasts, func(c *world.Call) bool {
		lost = nil
		for _, p := range w.Running() {
			if p.Node == n && p != c.Process && p.Belief() != nil && drops(w, c, p.Pod) {
				lost = p
			}
		}
		return lost != nil
	}, func(c *world.Call) bool {
		planner, pod := c.Process, lost.Pod
		planner.Freeze()
		w.Kill(lost)
		successor := func() *world.Process {
			for _, p := range w.Running() {
				if p.Pod == pod && p.Belief() != nil {
					return p
				}
			}
			return nil
		}
		w.When(30*time.Second, d, func() bool { return successor() != nil }, func() {
			if p := successor(); p != nil && !w.Quiet {
				p.Cut = true
				w.After(w.Profile.FenceAfter+40*time.Second, func() { w.Reconnect(p) })
			}
			planner.GoOn()
		})
		return false
	})
}
