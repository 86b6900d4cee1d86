package simulation

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// acts reports whether somebody but the process acts under the slot.
func (w *world) acts(id int, but *process) *process {
	for _, p := range w.running() {
		if b := p.belief(); p != but && b != nil && b.ID == id {
			return p
		}
	}
	return nil
}

// stir has something happen for which pods take slots.
func (w *world) stir(d *dice.Dice) {
	switch d.Below(4) {
	case 0:
		if w.profile.Rolls() {
			rollout(w, Fault{}, d)
		}
	case 1:
		scaleOwner(w, Fault{}, d)
	case 2:
		deleteSome(w, Fault{}, d)
	}
}

// suspendTaker suspends a pod before it writes the receipt for its slot. Meanwhile somebody damages the map, and another pod
// repairs it.
func suspendTaker(w *world, f Fault, d *dice.Dice) {
	w.stir(d)
	w.trapFor(f.Lasts, func(c *call) bool { is, _ := w.takes(c); return is }, func(c *call) bool {
		p := c.p
		w.After(d.Tail(100*time.Millisecond), func() { w.damage(d) })
		if id := noteOf(patched(c.Body, assignment.ReceiptKey)).ID; w.profile.FenceAfter > 0 && id != nil && d.Chance(0.5) {
			w.comeLate(p, *id, d)
			return false
		}
		w.suspend(p, d.Span(5*time.Second, 40*time.Second))
		if d.Chance(0.7) {
			w.relabel(p.pod)
		}
		return false
	})
}

// comeLate suspends a pod before it writes the receipt for its slot until the slot's next holder has vanished, and once more after that
// receipt.
func (w *world) comeLate(p *process, id int, d *dice.Dice) {
	p.freeze()
	w.when(2*time.Minute, d, func() bool { return w.acts(id, p) != nil }, func() {
		other := w.acts(id, p)
		if other == nil || w.quiet {
			p.goOn()
			return
		}
		w.vanish(other, d)
		freed := func() bool {
			v := w.owner()
			return v == nil || slots(object.Annotation(v.Object, assignment.DefaultKey))[id] != other.pod
		}
		w.when(10*time.Second, d, freed, func() {
			w.trapFor(5*time.Second, func(c *call) bool { return c.p == p && c.Verb == "get" && c.Resource == w.profile.Resource }, func(*call) bool {
				w.suspend(p, d.Span(0, 5*time.Second))
				return false
			})
			p.goOn()
		})
	})
}

// vanish deletes a process's pod by force and cuts the process off, while its kubelet does not run.
func (w *world) vanish(p *process, d *dice.Dice) {
	p.cut, p.node.mute = true, true
	if v := w.server.Get(object.Pods, p.pod); v != nil && object.UID(v.Object) == p.uid {
		w.server.Remove(v)
	}
	w.After(d.Span(2*w.profile.FenceAfter, 2*w.profile.FenceAfter+40*time.Second), func() {
		p.node.mute = false
		w.syncNode(p.node)
		w.reconnect(p)
	})
}

// comeBack has something happen after which a pod that gave its slot up gets one again.
func (w *world) comeBack(d *dice.Dice) {
	v := w.owner()
	if v == nil {
		return
	}
	if first := w.first(); first != nil && d.Chance(0.5) {
		// One pod less, and the one that goes has not the highest id.
		w.server.DeletePod(first.pod, w.profile.Grace)
		w.scale(v, max(1, object.Number(v.Object, "spec", v.Kind.Count)-1))
		return
	}
	if !w.profile.Rolls() {
		return
	}
	was := template(v.Object)
	rollout(w, Fault{}, d)
	w.After(d.Span(2*time.Second, 30*time.Second), func() {
		if !w.quiet {
			w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: "kubectl-set"}, func(o object.Object) { object.Need(o, "spec", "template")["version"] = int64(was) })
		}
	})
}

// halfGive kills a process that begins to give its slot between the two steps of giving. The others hear of it only when the pod's
// next process is about to take a slot, and that one crosses them.
func halfGive(w *world, f Fault, d *dice.Dice) {
	if w.profile.Rolls() && d.Chance(0.8) {
		rollout(w, f, d)
	} else {
		w.comeBack(d)
	}
	w.trapFor(f.Lasts+30*time.Second, func(c *call) bool { return w.releases(c) }, func(c *call) bool {
		pod := c.p.pod
		c.served = func(server.Answer) time.Duration {
			w.kill(c.p)
			others := w.freezeBut(pod, d)
			tell := func() {
				for _, p := range others {
					p.goOn()
				}
			}
			again := w.trapFor(time.Minute, func(c *call) bool { is, _ := w.takes(c); return is && c.p.pod == pod }, func(c *call) bool {
				w.crossWith(c.p, d)
				tell()
				return false
			})
			w.After(d.Span(15*time.Second, 40*time.Second), func() {
				if w.drop(again) {
					tell()
				}
			})
			return 0
		}
		return false
	})
}

// freezeBut suspends nearly all processes but those of one pod.
func (w *world) freezeBut(pod string, d *dice.Dice) []*process {
	var frozen []*process
	for _, p := range w.running() {
		if p.pod != pod && d.Chance(0.9) {
			p.freeze()
			frozen = append(frozen, p)
		}
	}
	return frozen
}

// crossWrites suspends a pod before it writes the receipt for its slot, until another pod is about to write the owner. That one is
// suspended, and goes on when the first one has its slot.
func crossWrites(w *world, f Fault, d *dice.Dice) {
	returning := d.Chance(0.4)
	if returning {
		w.comeBack(d)
	} else {
		if w.profile.FenceAfter == 0 && d.Chance(0.5) {
			clearFields(w, f, d)
		}
		w.stir(d)
	}
	w.trapFor(f.Lasts, func(c *call) bool { is, again := w.takes(c); return is && (again || !returning) }, func(c *call) bool {
		w.crossWith(c.p, d)
		return false
	})
}

// crossWith suspends first until another pod is about to write the owner, and that one until first has its slot.
func (w *world) crossWith(first *process, d *dice.Dice) {
	first.freeze()
	if d.Chance(0.6) {
		w.relabel(first.pod)
	}
	if d.Chance(0.2) {
		w.After(d.Tail(100*time.Millisecond), func() { w.damage(d) })
	}
	crossed := w.trapFor(time.Minute, func(c *call) bool { gets, _ := w.moves(c); return c.p != first && gets >= 0 }, func(c *call) bool {
		second := c.p
		second.freeze()
		first.goOn()
		w.when(5*time.Second, d, func() bool { return first.belief() != nil }, func() {
			if !w.quiet && d.Chance(0.7) {
				w.suspend(first, d.Span(time.Second, 10*time.Second))
			}
			second.goOn()
		})
		return false
	})
	w.After(d.Span(20*time.Second, time.Minute), func() {
		if w.drop(crossed) {
			first.goOn()
		}
	})
}

// lateGive kills a process that has just sent the map without its entry. The others are suspended, or do not
// hear of it, until the next process of the pod had time to take a slot; then the write arrives.
func lateGive(w *world, f Fault, d *dice.Dice) {
	if d.Chance(0.8) {
		rollout(w, f, d)
	} else {
		w.stir(d)
	}
	w.trapFor(f.Lasts, func(c *call) bool {
		_, lets := w.moves(c)
		v := w.server.Get(object.Pods, c.p.pod)
		return lets >= 0 && v != nil && !object.Terminating(v.Object)
	}, func(c *call) bool {
		_, id := w.moves(c)
		dead := c.p
		w.kill(dead)
		others := w.freezeBut(dead.pod, d)
		successor := func() *process {
			if p := w.acts(id, nil); p != nil && p.pod == dead.pod {
				return p
			}
			return nil
		}
		w.when(d.Span(15*time.Second, 45*time.Second), d, func() bool { return successor() != nil }, func() {
			w.arrive(c, false)
			for _, p := range others {
				p.goOn()
			}
			if p := successor(); p != nil && !w.quiet && d.Chance(0.7) {
				w.suspend(p, d.Span(time.Second, 15*time.Second))
			}
		})
		return true
	})
}

// bringBackState suspends a pod that is about to write the owner, until another one has the slot. Then somebody brings the owner back as
// the suspended pod has read it, old epoch and all, and it goes on.
func bringBackState(w *world, f Fault, d *dice.Dice) {
	w.stir(d)
	w.trapFor(f.Lasts, func(c *call) bool { gets, _ := w.moves(c); return gets >= 0 }, func(c *call) bool {
		p := c.p
		id, _ := w.moves(c)
		was := object.At(w.owner().Object, object.Metadata, "annotations")
		p.freeze()
		if d.Chance(0.8) {
			w.relabel(p.pod)
		}
		w.when(d.Span(20*time.Second, time.Minute), d, func() bool { return w.acts(id, p) != nil }, func() {
			if other := w.acts(id, p); other != nil && !w.quiet && d.Chance(0.5) {
				w.suspend(other, d.Span(time.Second, 10*time.Second))
			}
			if !w.quiet {
				w.putBack(was)
			}
			p.goOn()
		})
		return false
	})
}

// lateContact has the answer to a holder's read of the owner come late. While it is under way the pod is deleted by force and cut
// off from everything else, and its kubelet does not run.
func lateContact(w *world, f Fault, d *dice.Dice) {
	w.trapFor(f.Lasts, func(c *call) bool {
		return c.Verb == "get" && c.Resource == w.profile.Resource && c.p.belief() != nil
	}, func(c *call) bool {
		c.through = true
		c.served = func(server.Answer) time.Duration {
			w.vanish(c.p, d)
			return d.Span(w.profile.FenceAfter/4, w.profile.FenceAfter/2)
		}
		return false
	})
}
