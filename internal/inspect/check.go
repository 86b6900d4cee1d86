package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
)

// check finds what is wrong with a snapshot. It does no I/O: the same snapshot gives the same report.
func check(n snapshot) Report {
	c := checker{snapshot: n, state: n.owner.Record.State, receipts: map[int][]pod{}}
	for _, p := range n.pods {
		if n.locks(p) {
			c.receipts[p.receipt().ID] = append(c.receipts[p.receipt().ID], p)
		}
	}
	for _, lockers := range c.receipts {
		slices.SortFunc(lockers, func(a, b pod) int { // the first has the slot
			return cmp.Or(cmp.Compare(b.receipt().Epoch, a.receipt().Epoch), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
		})
	}
	if c.unused() {
		c.warnf("%s in namespace %s does not use idalloc, and never did: neither it nor any of its pods has an annotation of idalloc's; "+
			"if it should, its pods have not got so far, and the log of idalloc in one of them says why", c.owner, c.owner.Namespace)
		r := c.report()
		r.Unused = true
		return r
	}
	c.checkOwner()
	c.checkReceipts()
	if c.trusted() {
		c.checkEntries()
		c.checkWaiters()
		c.checkRequests()
	}
	c.checkPartitions()
	c.checkRollout()
	return c.report()
}

type checker struct {
	snapshot
	state assignment.State
	// receipts are the live pods with a receipt, by slot.
	receipts map[int][]pod
	findings []Finding
	warnings []string
	notes    []string
	// partitions sums up the partitions, nil if there are none.
	partitions *PartitionCounts
}

// trusted reports whether the entries of the map count. An owner without annotations and without receipts counts as one with an
// empty map, because nothing was ever assigned.
func (c *checker) trusted() bool {
	o := c.owner
	return o.Trust.Believed() || o.Ancient || (o.Trust == assignment.Absent && len(c.receipts) == 0)
}

// unused reports whether neither the owner nor any pod has a trace of idalloc.
func (c *checker) unused() bool {
	if c.owner.Trust != assignment.Absent {
		return false
	}
	for _, p := range c.pods {
		if p.sign() {
			return false
		}
	}
	return true
}

func (c *checker) findf(kind Kind, id int, name, format string, args ...any) {
	c.findings = append(c.findings, Finding{Kind: kind, ID: &id, Pod: name, Detail: fmt.Sprintf(format, args...)})
}

func (c *checker) warnf(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// gc returns the command that frees the slots of dead holders and restores the map.
func (c *checker) gc() string {
	return fmt.Sprintf("`idalloc gc %s -n %s`", strings.ToLower(c.owner.Kind)+"/"+c.owner.Name, c.owner.Namespace)
}

func (c *checker) checkOwner() {
	if c.owner.Trust == assignment.Untracked {
		c.warnf("somebody cleared metadata.managedFields of %s, so that idalloc cannot tell its own writes from others': ids stay unique, and each claim costs one list more", c.owner)
	}
	if c.trusted() {
		return
	}
	restore := "the pods restore it from their receipts within seconds, and holders keep their ids meanwhile; if it stays, "
	sweep := "run " + c.gc()
	for _, p := range c.owner.Record.Problems {
		c.findings = append(c.findings, Finding{Kind: Damaged, Detail: fmt.Sprintf("somebody else damaged %s: %s%s", p, restore, sweep)})
	}
	switch {
	case len(c.owner.Record.Problems) > 0:
	case c.owner.Trust == assignment.Absent:
		c.findings = append(c.findings, Finding{Kind: Changed, Detail: fmt.Sprintf(
			"%s has no assignment although pods hold ids of it, because somebody removed it or the workload was created again: %s%s", c.owner, restore, sweep)})
	default:
		c.findings = append(c.findings, Finding{Kind: Changed, Detail: "somebody else was the last to change the assignment, as metadata.managedFields shows: " + restore + sweep})
	}
}

// checkReceipts compares the receipts with each other and with the map.
func (c *checker) checkReceipts() {
	for id, lockers := range c.receipts {
		has := lockers[0].Name
		if c.trusted() && c.holds(id) {
			has = c.state.Slots[id]
		}
		for _, p := range lockers {
			if p.Name == has {
				continue
			}
			c.findf(HeldTwice, id, p.Name, "id %d is held twice: the receipt of pod %s names it, and it belongs to pod %s; "+
				"a pod whose idalloc runs withdraws such a receipt within seconds; if it stays, run `kubectl delete pod %s -n %s`", id, p.Name, has, p.Name, c.owner.Namespace)
		}
		if p := lockers[0]; c.trusted() && !c.holds(id) && !c.named(p) {
			c.findf(Mismatch, id, p.Name, "pod %s has a receipt for id %d, but the assignment does not name it: "+
				"the next pod that plans writes it in; if it stays, run %s", p.Name, id, c.gc())
		}
	}
	for name, p := range c.pods {
		if p.damage == "" || !p.live() {
			continue
		}
		if p.receipt() != nil { // only its epoch is wrong
			c.warnf("pod %s: annotation %s: %s: it still locks id %d; set the clocks right, and delete the pod if it stays", name, assignment.ReceiptKey, p.damage, p.receipt().ID)
			continue
		}
		f := Finding{Kind: Damaged, Pod: name, Detail: fmt.Sprintf("somebody else damaged the receipt of pod %s: annotation %s: %s: "+
			"it locks nothing; idalloc in the pod writes it again within seconds, or delete the pod", name, assignment.ReceiptKey, p.damage)}
		if id, named := c.state.Slots.Of(name); named && c.trusted() {
			f.ID = &id
		}
		c.findings = append(c.findings, f)
	}
}

// named reports whether the map gives this pod any slot.
func (c *checker) named(p pod) bool {
	id, ok := c.state.Slots.Of(p.Name)
	return ok && c.death(id, p, true) == ""
}

func (c *checker) checkEntries() {
	var harmless []string // ids whose holders are dead, and that no pod needs
	entries := map[string]int{}
	for _, id := range c.state.Slots.IDs() {
		name := c.state.Slots[id]
		p, exists := c.pods[name]
		why := c.death(id, p, exists)
		switch {
		case why != "" && (id >= c.owner.Count || c.rollout.finished):
			harmless = append(harmless, strconv.Itoa(id))
		case why != "":
			c.findf(HeldByDead, id, name, "id %d belongs to pod %s, which is %s: the next pod that waits takes it; to free it now, run %s", id, name, why, c.gc())
		case c.overdue(p) && id < c.owner.Count:
			c.findLost(id, p)
		case p.receipt() != nil && p.receipt().ID != id:
			c.findf(Mismatch, id, name, "the assignment gives id %d to pod %s, whose receipt names id %d: "+
				"idalloc in the pod settles it within seconds; if it stays, run `kubectl delete pod %s -n %s`", id, name, p.receipt().ID, name, c.owner.Namespace)
		}
		if first, twice := entries[name]; twice && why == "" {
			c.findf(Mismatch, id, name, "the assignment gives pod %s both id %d and id %d: run `kubectl delete pod %s -n %s`", name, first, id, name, c.owner.Namespace)
		}
		entries[name] = id
	}
	if len(harmless) > 0 {
		c.warnf("dead pods have entries that nobody needs, of ids %s: %s removes them", few(harmless), c.gc())
	}
}

// findLost says for whom all wait, and what to do.
func (c *checker) findLost(id int, p pod) {
	over := c.now.Sub(p.Deadline).Round(time.Second)
	if p.MayBeLost() {
		c.findf(HeldByLost, id, p.Name, "id %d belongs to pod %s, whose grace period has been over for %s, so its node %s may be down: in strict mode another pod that waits "+
			"takes it after a quarantine of %s; if none waits, bring the node back", id, p.Name, over, p.node, assignment.QuarantineTime(c.state.FenceAfter).Round(time.Second))
		return
	}
	c.findf(HeldByLost, id, p.Name, "id %d belongs to pod %s on node %s: %s", id, p.Name, p.node, allocator.OutlivesGrace)
}

// checkWaiters finds the ids that waiting pods could have.
func (c *checker) checkWaiters() {
	unheld := func(id int, p pod) {
		if p.gaveUp() {
			c.findf(Unheld, id, p.Name, "id %d belongs to nobody while pod %s waits, which gave its slot up for another pod: give a pod that starts time with --wait=1m; "+
				"otherwise the others do not keep the id, so see their logs, and repair their revision or undo it", id, p.Name)
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
		d := plan.Plan(c.willing(waiters, state))
		for _, filled := range d.Filled {
			if c.free(filled.ID) {
				unheld(filled.ID, c.pods[filled.Pod])
			}
		}
		if d.Next != nil {
			state = *d.Next
		}
	}
	c.checkQuarantine()
}

// willing returns the input of a plan that one of the waiters would make if they were siblings, all ran, and nothing kept them from a
// free slot. Slots of dead holders stay theirs, because these are findings of their own.
func (c *checker) willing(waiters []pod, state assignment.State) plan.Input {
	in := plan.Input{
		Count: c.owner.Count, State: state, Trust: assignment.Clean, FenceAfter: state.FenceAfter, Me: waiters[0].Name,
		Room: assignment.Room{All: math.MaxInt}, Pods: make([]plan.Pod, 0, len(c.pods)),
	}
	for _, p := range waiters {
		p.Controller, p.Receipt = "waiters", &assignment.Receipt{Waits: true}
		in.Pods = append(in.Pods, p.Pod)
	}
	for _, p := range c.pods {
		if c.locks(p) {
			in.Pods = append(in.Pods, p.Pod)
		}
	}
	for id, name := range state.Slots {
		p, exists := c.pods[name]
		switch {
		case !exists || (c.state.Slots[id] == name && c.death(id, p, exists) != ""):
			in.Pods = append(in.Pods, plan.Pod{Name: "the dead holder of " + strconv.Itoa(id), Terminating: true, Receipt: &assignment.Receipt{ID: id}})
		case p.receipt() == nil:
			in.Pods = append(in.Pods, p.Pod)
		}
	}
	return in
}

// claims reports whether a waiter is expected to take a free slot. A pod that gave its slot up counts, too: it must leave free
// slots to other pods, but then one of these should take the slot.
func (c *checker) claims(p pod) bool {
	switch {
	case p.controller == "": // the pod belongs to no owner, or its owner has released it
	case c.rollout.outdated[p.revision]: // the revision is from before idalloc was added
	default:
		return true
	}
	return false
}

// free reports whether nobody has the slot. A dead pod's is not free: it is a finding of its own.
func (c *checker) free(id int) bool {
	_, taken := c.state.Slots[id]
	_, quarantined := c.state.Quarantine.Since(id)
	return !taken && !quarantined && len(c.receipts[id]) == 0
}

func (c *checker) checkQuarantine() {
	kept := c.state.Quarantine.Without(c.state.Slots.IDs(), nil)
	if len(c.waiters()) == 0 {
		return
	}
	number, first := 0, []string{}
	for _, s := range kept { // a span may have two billion slots, so only its first ones are visited
		to := min(s.To, c.owner.Count-1)
		for id := s.From; id <= to && len(first) < mostNamed; id++ {
			first = append(first, strconv.Itoa(id))
		}
		number += max(0, to-s.From+1)
	}
	if number > 0 {
		c.warnf("strict mode keeps free ids in quarantine, because a process that vanished might still act under them, for %s from when a waiting pod first saw it: %s",
			assignment.QuarantineTime(c.state.FenceAfter), fewOf(first, number))
	}
}

// checkRequests finds requests that nobody can meet any more.
func (c *checker) checkRequests() {
	for _, id := range c.state.Handover.IDs() {
		name := c.state.Handover[id]
		p, exists := c.pods[name]
		held, holds := c.state.Slots.Of(name)
		var why string
		switch {
		case id >= c.owner.Count:
			why = fmt.Sprintf("the count is %d", c.owner.Count)
		case !exists || !p.live() || p.Terminating:
			why = "the pod is dead or Terminating"
		case holds:
			why = fmt.Sprintf("the pod has id %d", held)
		default:
			continue
		}
		c.warnf("the request of pod %s for id %d cannot be met any more (%s): the next pod that plans drops it", name, id, why)
	}
}
