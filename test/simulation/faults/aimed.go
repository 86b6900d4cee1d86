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

// acts reports whether another process acts under the slot.
func acts(w *world.World, id int, but *world.Process) *world.Process {
	for _, p := range w.Running() {
		if b := p.Belief(); p != but && b != nil && b.ID == id {
			return p
		}
	}
	return nil
}

// stir has something happen for which pods take slots or partitions.
func stir(w *world.World, f Fault, d *dice.Dice) {
	switch d.Below(4) {
	case 0:
		if w.Profile.Rolls() {
			rollout(w, f, d)
		}
	case 1:
		scaleOwner(w, f, d)
	case 2:
		toSomePod(deletePod)(w, f, d)
	default:
		if w.Profile.Partitions > 0 {
			afterWork(w, f, d, func(worker *world.Process) { movePartitions(w, f, d, worker) })
		}
	}
}

// suspendTaker suspends a pod before it writes the receipt for its slot. Meanwhile another client damages the map, and another pod
// repairs it.
func suspendTaker(w *world.World, f Fault, d *dice.Dice) {
	stir(w, f, d)
	w.TrapFor(f.Lasts, func(c *world.Call) bool { is, _ := takes(w, c); return is }, func(c *world.Call) bool {
		p := c.Process
		w.After(d.Tail(100*time.Millisecond), func() { damage(w, d) })
		before, next, _ := locks(w, c)
		if more := next.Share.Partitions.Minus(before.Share.Partitions); !more.Empty() && d.Chance(0.7) {
			lockLate(w, p, more, d)
			return false
		}
		if w.Profile.FenceAfter > 0 && d.Chance(0.5) {
			comeLate(w, p, next.Share.ID, d)
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
			w.TrapFor(5*time.Second, func(c *world.Call) bool { return c.Process == p && c.Verb == "list" }, func(*world.Call) bool {
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
			w.ChangeOwner(server.Writer{Manager: "kubectl-set"}, func(o object.Object) { w.SetTemplate(o, was) })
		}
	})
}

// halfGive kills a process right after it gave its slot up or unlocked partitions. The others hear of it only when the pod's next process is
// about to lock something, and that one crosses them.
func halfGive(w *world.World, f Fault, d *dice.Dice) {
	if d.Chance(0.5) {
		comeBack(w, d)
	} else {
		stir(w, f, d)
	}
	w.TrapFor(f.Lasts+30*time.Second, func(c *world.Call) bool { return gives(w, c) }, func(c *world.Call) bool {
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
				crossWith(w, c, d)
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

// crossTakes has two pods lock one slot at about the same time.
func crossTakes(w *world.World, f Fault, d *dice.Dice) {
	returning := d.Chance(0.4)
	if returning {
		comeBack(w, d)
	} else {
		stir(w, f, d)
	}
	w.TrapFor(f.Lasts, func(c *world.Call) bool { is, again := takes(w, c); return is && (again || !returning) }, func(c *world.Call) bool {
		crossWith(w, c, d)
		return false
	})
}

// crossWith suspends a process before or after it locks a slot, and has another client propose that slot to other pods. When one of them is about to
// lock it, the first one is resumed, and that one is suspended until the first one has the slot.
func crossWith(w *world.World, c *world.Call, d *dice.Dice) {
	first := c.Process
	_, next, _ := locks(w, c)
	id := next.Share.ID
	suspendAt(w, c, d)
	if d.Chance(0.3) {
		w.Relabel(first.Pod)
	}
	w.After(d.Tail(100*time.Millisecond), func() { propose(w, id, first.Pod, d) })
	crossed := w.TrapFor(time.Minute, func(c *world.Call) bool {
		is, _ := takes(w, c)
		_, next, _ := locks(w, c)
		return is && c.Process != first && next.Share.ID == id
	}, func(c *world.Call) bool {
		second := c.Process
		suspendAt(w, c, d)
		w.After(d.Tail(20*time.Millisecond), first.GoOn)
		w.When(5*time.Second, d, func() bool { return first.Belief() != nil }, func() {
			if !w.Quiet && d.Chance(0.5) {
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

// suspendAt suspends the process of a request before it is sent, or right after it was carried out.
func suspendAt(_ *world.World, c *world.Call, d *dice.Dice) {
	if d.Chance(0.5) {
		c.Process.Freeze()
		return
	}
	c.Served = func(server.Answer) time.Duration {
		c.Process.Freeze()
		return 0
	}
}

// propose has another client write on the owner that the slot is another pod's.
func propose(w *world.World, id int, but string, d *dice.Dice) {
	others := slices.DeleteFunc(w.Server.Objects(object.Pods), func(v *server.Version) bool { return v.Name == but || object.Ended(v.Object) })
	if w.Quiet || w.Owner() == nil || len(others) == 0 {
		return
	}
	slots := world.Slots(w.Owner())
	if slots == nil {
		slots = assignment.Slots{}
	}
	name := dice.Pick(d, others).Name
	if had, has := slots.Of(name); has {
		delete(slots, had)
	}
	slots[id] = name
	w.ChangeOwner(server.Writer{Manager: byHand}, func(o object.Object) { object.SetText(o, "annotations", assignment.Key, slots.Encode()) })
}

// lateLock has a write of a receipt be late, and kills its process or lets it continue without an answer. The write arrives when a process of the
// pod acts again. Others do not hear of anything until then.
func lateLock(w *world.World, f Fault, d *dice.Dice) {
	stir(w, f, d)
	w.TrapFor(f.Lasts, func(c *world.Call) bool { _, _, is := locks(w, c); return is && d.Chance(0.7) }, func(c *world.Call) bool {
		pod := c.Process.Pod
		if d.Chance(0.7) {
			w.Kill(c.Process)
		}
		var others []*world.Process
		if d.Chance(0.5) {
			others = freezeBut(w, pod, d)
		}
		back := func() bool {
			return slices.ContainsFunc(w.Running(), func(p *world.Process) bool { return p.Pod == pod && p.Belief() != nil })
		}
		arrive := func() {
			w.Arrive(c, false)
			for _, p := range others {
				p.GoOn()
			}
		}
		w.After(d.Span(time.Second, 16*time.Second), func() {
			w.When(d.Span(15*time.Second, 45*time.Second), d, back, arrive)
		})
		return true
	})
}

// bringBackState suspends a pod that is about to write the owner, until another one has the slot. Then another client brings the owner back as
// the suspended pod has read it, and the pod is resumed.
func bringBackState(w *world.World, f Fault, d *dice.Dice) {
	stir(w, f, d)
	w.TrapFor(f.Lasts, func(c *world.Call) bool { return gets(w, c) >= 0 }, func(c *world.Call) bool {
		p, id := c.Process, gets(w, c)
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
