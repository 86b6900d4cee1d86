package inspect

import (
	"math"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// checkWaiters finds the ids that waiting pods could have. The planner's own function says which: a second version of its rules missed two ways in
// which a pod gets its ordinal. It plans with room for all, because a plan with the owner's real room would hide ids.
func (c *checker) checkWaiters() {
	unheld := func(id int, p pod) {
		if p.gaveUp() {
			c.findf(Unheld, id, p.Name, "id %d belongs to nobody while pod %s waits, which gave its slot up for another pod: give a pod that starts time with --wait=1m; "+
				"otherwise the others do not keep the id, so see their logs, and repair their revision or undo it", id, p.Name)
			return
		}
		if p.byController {
			c.findf(Unheld, id, p.Name, "id %d belongs to nobody while pod %s waits for one behind its scheduling gate: give the controller time with --wait=1m; otherwise see %s", id, p.Name, checks)
			return
		}
		c.findf(Unheld, id, p.Name, "id %d belongs to nobody while pod %s waits for one: give a pod that starts time with --wait=1m; "+
			"otherwise see the log of idalloc in pod %s, if it runs there at all", id, p.Name, p.Name)
	}
	state := c.state
	for _, gaveUp := range []bool{false, true} { // pods that gave their slot up come last
		waiters := slices.DeleteFunc(c.waiters(), func(p pod) bool { return p.gaveUp() != gaveUp || !c.claims(p) })
		if len(waiters) == 0 {
			continue
		}
		d := proposal.Plan(c.willing(waiters, state))
		for _, filled := range d.Filled {
			if c.free(filled.ID) {
				unheld(filled.ID, c.pods[filled.Pod])
			}
		}
		if d.Next != nil {
			state = *d.Next
		}
	}
}

// willing returns the input of a plan that one of the waiters would make if they were siblings, all ran, and nothing kept them from a
// free slot. Slots of dead holders stay theirs, because these are findings of their own.
func (c *checker) willing(waiters []pod, state assignment.State) proposal.Input {
	in := proposal.Input{
		Count: c.owner.Count, State: state, Me: waiters[0].Name, Room: assignment.Room{All: math.MaxInt}, Pods: make([]proposal.Pod, 0, len(c.pods)),
		Partitions: proposal.Division{Unchanged: true},
	}
	for _, p := range waiters {
		p.Controller, p.Receipt = "waiters", receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing()}
		in.Pods = append(in.Pods, p.Pod)
	}
	for _, lockers := range c.lockers {
		for _, p := range lockers {
			p.Receipt.Strict = false // a plan would take the slot from a strict pod that is lost
			in.Pods = append(in.Pods, p.Pod)
		}
	}
	for id, name := range state.Slots {
		p := c.pods[name]
		switch dead := c.death(name) != ""; {
		case dead && len(c.lockers[id]) == 0:
			in.Pods = append(in.Pods, proposal.Pod{
				Name: "the dead holder of " + number(id), Terminating: true, Receipt: receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: id}},
			})
		case !dead && p.Receipt.Slot() < 0 && p.Receipt.State != receipt.GaveUp:
			in.Pods = append(in.Pods, p.Pod)
		}
	}
	return in
}

// claims reports whether a waiter is expected to take a free slot. A pod that gave its slot up and waits again counts, too: it must leave free
// slots to other pods, but then one of these should take the slot.
func (c *checker) claims(p pod) bool {
	switch {
	case p.Receipt.State == receipt.GaveUp: // it takes nothing before it says that it waits again
	case p.elsewhere.State != receipt.None: // it is another owner's so far
	case p.controller == "": // the pod belongs to no owner, or its owner has released it
	case p.byController && (!p.gated || len(p.gates) > 0): // nothing gives it one now
	case c.rollout.outdated[p.revision]: // the revision is from before idalloc was added
	default:
		return true
	}
	return false
}

// free reports whether nobody has the slot. A dead pod's is not free: it is a finding of its own. A Lease that counts still keeps a strict pod
// from it.
func (c *checker) free(id int) bool {
	_, taken := c.state.Slots[id]
	return !taken && len(c.lockers[id]) == 0 && c.bars(id, "") == ""
}
