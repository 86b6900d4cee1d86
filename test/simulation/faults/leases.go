package faults

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// lateContact has the answer to a holder's renewal of its Lease come late. While it is under way the pod is deleted by force and cut
// off from everything else, and its kubelet does not run.
func lateContact(w *world.World, f Fault, d *dice.Dice) {
	w.TrapFor(f.Lasts, func(c *world.Call) bool {
		return c.Verb == server.VerbUpdate && c.Process.Belief() != nil
	}, func(c *world.Call) bool {
		c.Through = true
		c.Served = func(server.Answer) time.Duration {
			vanish(w, c.Process, d)
			return d.Span(w.Profile.FenceAfter/4, w.Profile.FenceAfter/2)
		}
		return false
	})
}

// loseLease has another client delete the Lease of a pod that works, or take its labels or its holder away. Then the map says that the slot is another
// pod's.
func loseLease(w *world.World, f Fault, d *dice.Dice) {
	all := slices.DeleteFunc(w.Server.Objects(object.Leases), func(v *server.Version) bool { return object.Text(v.Object, "spec", "holderIdentity") == "" })
	if len(all) == 0 {
		return
	}
	v := dice.Pick(d, all)
	switch by := (server.Writer{Manager: byHand}); d.Below(3) {
	case 0:
		w.Server.Remove(v)
	case 1:
		w.Server.Change(object.Leases, v.Name, by, func(o object.Object) {
			object.SetText(o, "labels", dice.Pick(d, []string{receipt.IDLabel, receipt.OwnerLabel}), "")
		})
	default:
		w.Server.Change(object.Leases, v.Name, by, func(o object.Object) { delete(object.Need(o, "spec"), "holderIdentity") })
	}
	holder, _, _ := strings.Cut(object.Text(v.Object, "spec", "holderIdentity"), "/")
	if id, err := strconv.Atoi(object.Labels(v.Object)[receipt.IDLabel]); err == nil && d.Chance(0.8) {
		propose(w, id, holder, d)
	}
	if d.Chance(0.5) {
		stir(w, f, d)
	}
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
