package faults

import (
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// upgrade begins a revision with a newer idalloc, which writes a later format. The pods of others cannot read that.
func upgrade(w *world.World, f Fault, d *dice.Dice) { mixPrograms(w, f, d, world.Program{Newer: true}) }

// otherKey begins a revision with another annotation key.
func otherKey(w *world.World, f Fault, d *dice.Dice) {
	mixPrograms(w, f, d, world.Program{Keyed: true})
}

// mixPrograms begins a revision with another program. After a while somebody may go back, or may go on by force.
func mixPrograms(w *world.World, f Fault, d *dice.Dice, as world.Program) {
	v := w.Owner()
	if v == nil {
		return
	}
	before := world.Template(v.Object)
	w.Roll(as)
	w.After(f.Lasts, func() {
		if w.Quiet {
			return
		}
		w.Witness.Excuse()
		switch d.Below(4) {
		case 0: // nobody does anything
		case 1:
			endPods(w, d, func(program world.Program) bool { return program != as })
		default:
			goBack(w, f, d, before)
			if d.Chance(0.4) {
				endPods(w, d, func(program world.Program) bool { return program == as })
			}
			if d.Chance(0.6) {
				w.After(d.Tail(10*time.Second), w.Unseal)
			}
		}
	})
}

// goBack takes a revision back: kubectl rollout undo also brings the annotations of the earlier one back.
func goBack(w *world.World, f Fault, d *dice.Dice, before int) {
	if w.Profile.Resource == object.Deployments && d.Chance(0.6) {
		undo(w, f, d)
		return
	}
	w.ChangeOwner(server.Writer{Manager: "kubectl-apply"}, func(o object.Object) {
		object.Need(o, "spec", "template")["version"] = int64(before)
	})
}

// endPods has somebody delete the pods with certain programs, one after the other.
func endPods(w *world.World, d *dice.Dice, which func(world.Program) bool) {
	at := time.Duration(0)
	for _, pod := range w.Server.Objects(object.Pods) {
		if !which(w.Programs[world.MadeFrom(pod)]) {
			continue
		}
		at += d.Tail(2 * time.Second)
		w.After(at, func() { w.Server.DeletePod(pod.Name, w.Profile.Grace) })
	}
}
