package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

const (
	// settlesWithin is how long a pod may leave alone what the owner gives to it. A process that has restarted lists again for ten seconds.
	settlesWithin = 15 * time.Second
	// startsWithin is the same for a pod whose program is not known to run. A pod that waits longer than this is worth a look.
	startsWithin = time.Minute
	// stopsWithin is how long work may go on that was told to stop: the default of --drain-timeout, and a minute.
	stopsWithin = 6 * time.Minute
)

// check finds what is wrong with a snapshot. It does no I/O: the same snapshot gives the same report.
func check(n snapshot) Report {
	c := checker{holding: n.holding(), state: n.owner.Record.State}
	if c.checkUnused() {
		r := c.report()
		r.Unused = r.OK
		return r
	}
	c.checkOwner()
	c.checkReceipts()
	c.checkLocks()
	c.checkEntries()
	c.checkPods()
	c.checkGrace()
	c.checkAssigned()
	c.checkWaiters()
	c.checkBarred()
	c.checkRequests()
	c.checkMoves()
	c.checkLeases()
	c.checkAccounts()
	c.checkPartitions()
	c.checkRollout()
	c.checkCondemned()
	return c.report()
}

type checker struct {
	holding
	state    assignment.State
	findings []Finding
	warnings []string
	notes    []string
	// partitions sums up the partitions, nil if there are none.
	partitions *PartitionCounts
}

func (c *checker) findf(kind Kind, id int, name, format string, args ...any) {
	c.findings = append(c.findings, Finding{Kind: kind, ID: &id, Pod: name, Detail: fmt.Sprintf(format, args...)})
}

func (c *checker) warnf(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// gc returns the command that frees the slots of dead holders and writes down what live pods lock.
func (c *checker) gc() string {
	return fmt.Sprintf("`idalloc gc %s -n %s`", strings.ToLower(c.owner.Kind)+"/"+c.owner.Name, c.owner.Namespace)
}

// deletion returns the command that deletes a pod.
func (c *checker) deletion(name string) string {
	return fmt.Sprintf("`kubectl delete pod %s -n %s`", name, c.owner.Namespace)
}

// checkOwner finds what somebody damaged or removed on the owner.
func (c *checker) checkOwner() {
	const again = "the next pod that plans writes it again from the receipts, within seconds, and holders keep their ids meanwhile; if it stays, "
	for _, p := range c.owner.Record.Problems {
		c.findings = append(c.findings, Finding{Kind: Damaged, Detail: fmt.Sprintf("somebody else damaged %s: it counts as absent: %srun %s", p, again, c.gc())})
	}
	if c.copied != "" {
		c.findings = append(c.findings, Finding{Kind: Changed, Pod: c.copied, Detail: fmt.Sprintf(
			"the assignment names pod %s, which lives and is not a pod of %s: it was copied from another workload; the next pod that plans writes another one; if none does, run "+
				"`kubectl annotate %s %s -n %s %s-`", c.copied, c.owner, strings.ToLower(c.owner.Kind), c.owner.Name, c.owner.Namespace, assignment.Key)})
	}
	if c.wiped() {
		c.findings = append(c.findings, Finding{Kind: Changed, Detail: fmt.Sprintf(
			"%s has no assignment although pods hold ids of it, because somebody removed it or the workload was created again: %srun %s", c.owner, again, c.gc())})
	}
}

// wiped reports whether the owner has no map although pods hold ids.
func (c *checker) wiped() bool {
	return len(c.lockers) > 0 && len(c.state.Slots) == 0 && !c.broken(assignment.Key)
}

// broken reports whether an annotation of the owner cannot be read.
func (n snapshot) broken(key string) bool {
	for _, p := range n.owner.Record.Problems {
		if p.Key == key {
			return true
		}
	}
	return false
}

// checkReceipts finds receipts that cannot be read, or cannot be found by their labels.
func (c *checker) checkReceipts() {
	for _, name := range c.names() {
		p := c.pods[name]
		if p.damage == "" || !p.live() {
			continue
		}
		f := Finding{Kind: Damaged, Pod: name}
		what := ""
		if id := p.Receipt.Slot(); id >= 0 {
			f.ID, what = &id, fmt.Sprintf("id %d and ", id)
		}
		switch p.Receipt.State {
		case receipt.Unreadable:
			f.Detail = fmt.Sprintf("somebody else damaged the receipt of pod %s: %s: it locks %severy partition until idalloc in the pod writes it again, within seconds; if it stays, run %s",
				name, p.damage, what, c.deletion(name))
		default:
			f.Detail = fmt.Sprintf("somebody else changed labels of pod %s: %s: idalloc in the pod sets them again within seconds; if they stay, run %s", name, p.damage, c.deletion(name))
		}
		c.findings = append(c.findings, f)
	}
}

// checkLocks compares the receipts with each other and with the map.
func (c *checker) checkLocks() {
	for id, lockers := range c.lockers {
		for _, p := range lockers[1:] {
			c.findf(HeldTwice, id, p.Name, "id %d is held twice: the receipts of pods %s and %s lock it, and from outside nobody can tell which of them acts under it; "+
				"the one whose receipt was written later withdraws by itself within seconds; if both stay, ask both programs, for example by the log of idalloc in each pod, "+
				"and delete the pod that does not act under it, or both if both do", id, lockers[0].Name, p.Name)
		}
		has, _ := c.holder(id)
		_, named := c.state.Slots.Of(has)
		switch other := c.state.Slots[id]; {
		case other == has || c.wiped() || c.broken(assignment.Key):
		case c.death(other) == "" && other != "":
			c.findf(Mismatch, id, has, "pod %s locks id %d, and the assignment gives it to pod %s: the next pod that plans puts that right; if it stays, run %s", has, id, other, c.gc())
		case !named && other == "":
			c.findf(Mismatch, id, has, "pod %s locks id %d, and the assignment does not name it: the next pod that plans writes it in; if it stays, run %s", has, id, c.gc())
		}
	}
}

func (c *checker) checkEntries() {
	var left []string // ids whose holders are dead, while no live pod has an id and could say so
	for _, id := range c.state.Slots.IDs() {
		name := c.state.Slots[id]
		p := c.pods[name]
		why := c.death(name)
		switch {
		case why != "" && len(c.lockers[id]) > 0: // another pod has it
			c.findf(Mismatch, id, name, "the assignment gives id %d to pod %s, which is %s, and pod %s locks it: the next pod that plans puts that right; if it stays, run %s",
				id, name, why, c.lockers[id][0].Name, c.gc())
		case c.copied != "" && why == gone: // not the owner's, and checkOwner says so
		case why != "" && len(c.lockers) == 0 && (id >= c.owner.Count || c.rollout.finished):
			left = append(left, number(id))
		case why != "":
			c.findf(HeldByDead, id, name, "id %d belongs to pod %s, which is %s: a pod that waits takes it, or else a pod with an id takes it out of the assignment "+
				"after ten seconds; if it stays, run %s", id, name, why, c.gc())
		case c.overdue(p) && id < c.owner.Count:
			c.findLost(id, p)
		case p.Receipt.Slot() >= 0 && p.Receipt.Slot() != id && len(c.lockers[id]) == 0:
			c.findf(Mismatch, id, name, "the assignment gives id %d to pod %s, whose receipt locks id %d: the next pod that plans puts that right; if it stays, run %s", id, name, p.Receipt.Slot(), c.gc())
		case p.Receipt.Slot() < 0 && len(c.lockers[id]) == 0:
			c.checkProposal(id, p)
		}
	}
	if len(left) > 0 {
		c.warnf("the assignment names dead pods, for ids %s, and no pod lives that could take them out: the next one does; %s does it now", few(left), c.gc())
	}
}

// checkProposal finds a live pod that does not take the slot that the map gives to it. The map has said so since it was written last.
func (c *checker) checkProposal(id int, p pod) {
	patience := startsWithin
	if p.sign() {
		patience = settlesWithin
	}
	since, known := c.unchanged()
	if !known || since < patience || len(p.gates) > 0 || p.Receipt.Strict && c.bars(id, p.Name) != "" {
		return
	}
	if p.byController {
		c.findf(Mismatch, id, p.Name, "the assignment has given id %d to pod %s for %s at least, and idalloc-controller has not locked it: see %s", id, p.Name, since.Round(time.Second), checks)
		return
	}
	c.findf(Mismatch, id, p.Name, "the assignment has given id %d to pod %s for %s at least, and the pod has not locked it: see the log of idalloc in the pod, if it runs there at all: "+
		"it may have no way to the API server; otherwise look whether an admission webhook or policy removes its receipt; if the pod is of no use, run %s", id, p.Name, since.Round(time.Second), c.deletion(p.Name))
}

// unchanged returns for how long idalloc has not written the owner. known is false if the server does not say.
func (n snapshot) unchanged() (since time.Duration, known bool) {
	return max(0, n.now.Sub(n.written)), !n.written.IsZero()
}

// findLost says for what all wait, and what to do.
func (c *checker) findLost(id int, p pod) {
	over := c.now.Sub(p.Deadline).Round(time.Second)
	if !p.Receipt.Strict {
		c.findf(HeldByLost, id, p.Name, "id %d belongs to pod %s on node %s: %s", id, p.Name, p.node, allocator.OutlivesGrace)
		return
	}
	when := "when its Lease counts no more"
	if l, held := c.leases.held[id]; held {
		when += ", at " + ends(l).UTC().Format(time.RFC3339) + " by its renewTime"
	}
	c.findf(HeldByLost, id, p.Name, "id %d belongs to pod %s, whose grace period has been over for %s, so its node %s may be down: in strict mode another pod that waits "+
		"takes it %s; if none waits, bring the node back", id, p.Name, over, p.node, when)
}
