package inspect

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/placement"
)

// PartitionCounts sums up the partitions of a Report.
type PartitionCounts struct {
	// Count is the number of partitions in force.
	Count int `json:"count"`
	// Locked is the number of those that one live pod locks and that its id owns.
	Locked int `json:"locked"`
}

// checkPartitions finds what is wrong with partitions.
func (c *checker) checkPartitions() {
	if !c.dividing() {
		return
	}
	d := c.divide()
	c.checkWish()
	c.checkRow(d)
	c.checkShares(d)
	c.checkCounts(d)
	c.checkPaused()
	if c.state.Row == nil {
		return
	}
	c.checkUnowned(d)
	c.checkAwaiting()
	c.checkWork(d)
	c.checkStrategy()
}

// dividing reports whether there is anything to say of partitions.
func (c *checker) dividing() bool {
	if c.state.Row != nil || c.broken(assignment.PartitionOwnersKey) || c.owner.Wish.HasCount || len(c.owner.Wish.Problems) > 0 {
		return true
	}
	for name := range c.pods {
		if !c.lockedBy(name).Empty() {
			return true
		}
	}
	return false
}

func (c *checker) partitionf(kind Kind, set placement.Set, f Finding, format string, args ...any) {
	f.Kind, f.Partitions, f.Detail = kind, set.String(), fmt.Sprintf(format, args...)
	c.findings = append(c.findings, f)
}

// checkWish compares the user's annotations with what is in force.
func (c *checker) checkWish() {
	for _, p := range c.owner.Wish.Problems {
		c.partitionf(PartitionKeys, placement.Set{}, Finding{}, "%s: this value counts as absent: set one that makes sense", p)
	}
	if what := c.unmet(); what != "" {
		c.partitionf(PartitionKeys, placement.Set{}, Finding{}, "%s", what)
	}
	row := c.owner.Record.State.Row
	if !c.owner.Wish.HasCount && !c.garbled(assignment.PartitionCountKey) && row != nil && row.Count > 0 {
		c.warnf("annotation %s of %s is gone, and %d partitions stay in force: set it again, or set it to \"0\" to end them", assignment.PartitionCountKey, c.owner, row.Count)
	}
}

// garbled reports whether the value of one of the user's annotations makes no sense.
func (n snapshot) garbled(key string) bool {
	return slices.ContainsFunc(n.owner.Wish.Problems, func(p assignment.ProblemError) bool { return p.Key == key })
}

// unmet says which of the user's annotations are not in force although pods have ids, empty if all are.
func (h holding) unmet() string {
	wish, row := h.owner.Wish, h.owner.Record.State.Row
	switch {
	case !wish.HasCount || h.broken(assignment.PartitionOwnersKey) || len(h.lockers) == 0:
		return ""
	case !h.someoneWorks() && wish.Count == 0:
		return ""
	case !h.someoneWorks():
		return fmt.Sprintf("annotation %s asks for %d partitions, and no pod that has an id works on partitions: start idalloc in the pods with --partitions, or link idalloc and call RunPartitions; "+
			"if they do so, they are paused", assignment.PartitionCountKey, wish.Count)
	}
	const soon = "the next pod that plans takes it over within seconds; if it stays, see the log of idalloc in the pods"
	want := wish.Strategy
	if want == "" {
		want = placement.DefaultName
	}
	switch {
	case row == nil && wish.Count > 0:
		return fmt.Sprintf("annotation %s asks for %d partitions, and none are in force: %s", assignment.PartitionCountKey, wish.Count, soon)
	case row == nil:
	case row.Count != wish.Count:
		return fmt.Sprintf("annotation %s asks for %d partitions, and %d are in force: %s", assignment.PartitionCountKey, wish.Count, row.Count, soon)
	case row.Strategy == want || h.garbled(assignment.PartitionStrategyKey):
	case unknown(want):
		return fmt.Sprintf("annotation %s asks for strategy %s, which this idalloc does not know, and %s is in force: it stays until a pod plans that knows the other one; "+
			"see if the name is right, and if the pods' program has this strategy", assignment.PartitionStrategyKey, want, row.Strategy)
	default:
		return fmt.Sprintf("annotation %s asks for strategy %s, and %s is in force: %s", assignment.PartitionStrategyKey, want, row.Strategy, soon)
	}
	return ""
}

// someoneWorks reports whether a live pod with an id works on partitions.
func (h holding) someoneWorks() bool {
	for _, lockers := range h.lockers {
		for _, p := range lockers {
			if p.divides() {
				return true
			}
		}
	}
	return false
}

func unknown(strategy string) bool {
	_, err := placement.Named(strategy)
	return err != nil
}

// checkRow finds that somebody removed the owners of the partitions.
func (c *checker) checkRow(d division) {
	locked := slices.ContainsFunc(d.locker, func(name string) bool { return name != "" })
	if c.state.Row == nil && locked && !c.broken(assignment.PartitionOwnersKey) {
		c.partitionf(Changed, placement.Set{}, Finding{}, "%s does not say who owns which partitions although pods lock some, because somebody removed it or the workload was created again: "+
			"the next pod that plans writes it again from the receipts, within seconds, and nobody's work stops meanwhile; if it stays, see the log of idalloc in the pods", c.owner)
	}
}

// checkShares finds partitions that two pods lock, or one whose id does not own them.
func (c *checker) checkShares(d division) {
	twice, stray := map[[2]string][]int{}, map[string][]int{}
	for k, name := range d.locker {
		switch {
		case d.second[k] != "":
			pair := [2]string{name, d.second[k]}
			twice[pair] = append(twice[pair], k)
		case name != "" && c.state.Row != nil && !c.owns(name, k):
			stray[name] = append(stray[name], k)
		}
	}
	for pair, ks := range twice {
		set := placement.Of(ks...)
		c.partitionf(PartitionTwice, set, Finding{Pod: pair[1]}, "partitions %s are locked twice: the receipts of pods %s and %s lock them, and from outside nobody can tell which of them works on them; "+
			"the one whose receipt was written later lets go by itself within seconds; if both stay, ask both programs, for example by the log of idalloc in each pod, "+
			"and delete the pod that does not work on them, or both if both do", set, pair[0], pair[1])
	}
	for name, ks := range stray {
		set, id := placement.Of(ks...), c.pods[name].Receipt.Slot()
		c.partitionf(PartitionMismatch, set, Finding{ID: &id, Pod: name}, "pod %s locks partitions %s, and annotation %s does not give them to its id: nobody else gets them before its work on them has stopped, "+
			"and it lets go then; if it stays, see its log, and run %s", name, set, assignment.PartitionOwnersKey, c.deletion(name))
	}
}

// checkUnowned finds partitions of nobody. A single look cannot see since when they have been nobody's. But the row has said so since idalloc
// wrote the owner last.
func (c *checker) checkUnowned(d division) {
	var ks []int
	for k, id := range d.ids {
		if id == nobody && k < c.inForce().Count && d.locker[k] == "" {
			ks = append(ks, k)
		}
	}
	if len(ks) == 0 || c.owner.Count == 0 {
		return
	}
	set := placement.Of(ks...)
	age, _ := c.unchanged()
	if age > c.patience() {
		c.partitionf(PartitionUnowned, set, Finding{}, "partitions %s belong to nobody, and have for %s at least, as long as idalloc has not written the workload: "+
			"a pod that works on partitions and has an id gives them out within seconds; see the log of idalloc in the pods", set, age.Round(time.Second))
		return
	}
	c.warnf("partitions %s belong to nobody, for %s at least, as long as idalloc has not written the workload: the next pod that plans gives them out; it is a finding after %s",
		set, age.Round(time.Second), c.patience())
}

// checkAwaiting finds partitions of ids that no live pod holds. A single look cannot see when a holder died. But a slot that has no
// entry has had none since the map was written last.
func (c *checker) checkAwaiting() {
	for id, owned := range c.inForce().Owners {
		if name, _ := c.holder(id); name != "" || owned.Empty() {
			continue
		}
		after := "after " + c.owner.Wish.FailoverAfter.String()
		switch {
		case c.owner.Wish.FailoverAfter < 0:
			after = assignment.Never
		case c.inForce().Strategy == placement.NamePrimary && !c.owner.Wish.HasFailoverAfter:
			after = "at once, or " + after + " while a pod waits or a rolling update goes on"
		}
		name, taken := c.state.Slots[id]
		age, _ := c.unchanged()
		switch bars := c.bars(id, ""); {
		case bars != "":
			c.warnf("partitions %s belong to id %d, which no pod has: %s, and until then no strict pod works on them", owned, id, bars)
		case taken:
			c.warnf("partitions %s belong to id %d, whose pod %s is dead: its next holder gets them; "+
				"otherwise other ids do, %s from when a pod knew of its death, which verify cannot see (annotation %s)", owned, id, name, after, assignment.PartitionFailoverAfterKey)
		case c.owner.Wish.FailoverAfter < 0 || age <= c.owner.Wish.FailoverAfter:
			c.warnf("partitions %s belong to id %d, which no pod has, for %s at least, as long as idalloc has not written the workload: its next holder gets them; otherwise other ids do, %s (annotation %s)",
				owned, id, age.Round(time.Second), after, assignment.PartitionFailoverAfterKey)
		default:
			c.partitionf(PartitionUnowned, owned, Finding{ID: &id}, "partitions %s belong to id %d, which no pod has, for %s at least, as long as idalloc has not written the workload: other ids should have got them %s (annotation %s); "+
				"see why no pod has the id, and the log of idalloc in the pods that hold others", owned, id, age.Round(time.Second), after, assignment.PartitionFailoverAfterKey)
		}
	}
}

// checkPaused tells of pods that work on no partitions.
func (c *checker) checkPaused() {
	for _, id := range c.paused() {
		name, _ := c.holder(id)
		why := "somebody paused it (POST /v1/pause), and it takes part again after POST /v1/resume; or its program does not work on partitions"
		if failed := c.pods[name].Receipt.Failures(); failed > 0 {
			why = fmt.Sprintf("its program failed %d times in a row, and it takes part again after some minutes", failed)
		}
		c.warnf("pod %s with id %d works on no partitions, which other ids get: %s", name, id, why)
	}
}

// patience returns how long partitions may be nobody's.
func (c *checker) patience() time.Duration {
	if c.owner.Wish.FailoverAfter < 0 {
		return assignment.DefaultFailoverAfter
	}
	return c.owner.Wish.FailoverAfter
}

func (c *checker) checkStrategy() {
	if name := c.inForce().Strategy; name != "" && unknown(name) {
		c.warnf("strategy %s is in force, which this idalloc does not know: a pod that does not know it either keeps its partitions and moves none; verify cannot tell who should have what", name)
	}
	if c.inForce().Strategy == placement.NameExternal {
		for _, id := range slices.Sorted(maps.Keys(c.owner.Wish.Target)) {
			if set := c.owner.Wish.Target[id]; id >= c.owner.Count && !set.Empty() {
				c.warnf("annotation %s gives partitions %s to id %d, which there is not: the count is %d, and sticky places them", assignment.PartitionTargetKey, set, id, c.owner.Count)
			}
		}
	}
	if n, p := c.owner.Count, c.inForce().Count; p > 0 && n > p {
		c.notes = append(c.notes, fmt.Sprintf("there are %d ids for %d partitions, so %d or more ids have none", n, p, n-p))
	}
}

func (c *checker) checkCounts(d division) {
	c.partitions = &PartitionCounts{Count: c.inForce().Count}
	for k := range min(c.partitions.Count, len(d.ids)) {
		if s := d.at(k).state; s == Owned || s == Stopping && d.ids[k] != nobody && c.owns(d.locker[k], k) {
			c.partitions.Locked++
		}
	}
}
