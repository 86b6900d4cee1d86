package inspect

import (
	"fmt"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
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
	if !c.divides() {
		return
	}
	d := c.divide()
	c.checkWish()
	if newer := c.owner.Record.Partitions.Newer; c.owner.PartitionTrust == assignment.Unreadable {
		c.warnf("%s", c.newer(newer))
		return
	}
	c.checkRow(d)
	c.checkLocks(d)
	c.checkCounts(d)
	c.checkPaused()
	withheld := c.trusted() && c.checkUnaware()
	if !c.divided() {
		return
	}
	if !withheld {
		c.checkUnowned(d)
	}
	c.checkAwaiting(d)
	c.checkStrategy()
}

// divides reports whether there is anything to say of partitions.
func (c *checker) divides() bool {
	if c.owner.PartitionTrust != assignment.Absent || c.owner.Wish.HasCount || len(c.owner.Wish.Problems) > 0 {
		return true
	}
	for _, p := range c.pods {
		if !p.locks().Empty() {
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
	row := c.owner.Record.State.Partitions
	if !c.owner.Wish.HasCount && !c.garbled(assignment.PartitionCountKey) && row != nil && row.Count > 0 {
		c.warnf("annotation %s of %s is gone, and %d partitions stay in force: set it again, or set it to \"0\" to end them", assignment.PartitionCountKey, c.owner, row.Count)
	}
}

// garbled reports whether the value of one of the user's annotations makes no sense.
func (n snapshot) garbled(key string) bool {
	return slices.ContainsFunc(n.owner.Wish.Problems, func(p assignment.ProblemError) bool { return p.Key == key })
}

// unmet says which of the user's annotations are not in force although a live pod works on partitions, empty if all are.
func (n snapshot) unmet() string {
	wish, row := n.owner.Wish, n.owner.Record.State.Partitions
	if !wish.HasCount || !n.divided() && n.owner.PartitionTrust != assignment.Absent || !n.someoneWorks() {
		return ""
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
	case row.Strategy == want || n.garbled(assignment.PartitionStrategyKey):
	case unknown(want):
		return fmt.Sprintf("annotation %s asks for strategy %s, which this idalloc does not know, and %s is in force: it stays until a pod plans that knows the other one; "+
			"see if the name is right, and if the pods' program has this strategy", assignment.PartitionStrategyKey, want, row.Strategy)
	default:
		return fmt.Sprintf("annotation %s asks for strategy %s, and %s is in force: %s", assignment.PartitionStrategyKey, want, row.Strategy, soon)
	}
	return ""
}

// someoneWorks reports whether a live pod with an id works on partitions.
func (n snapshot) someoneWorks() bool {
	for id := range n.owner.Record.State.Slots {
		if name, live := n.holder(id); live && n.pods[name].works(id) {
			return true
		}
	}
	return false
}

func unknown(strategy string) bool {
	_, err := placement.Named(strategy)
	return err != nil
}

// checkRow finds changes of the owners of the partitions that idalloc did not make.
func (c *checker) checkRow(d division) {
	o := c.owner
	const restore = "the pods restore it from their receipts within seconds, and keep their partitions meanwhile; if it stays, see the log of idalloc in the pods"
	locked := slices.ContainsFunc(d.locker, func(name string) bool { return name != "" })
	switch {
	case o.PartitionTrust == assignment.Untracked && o.Trust != assignment.Untracked:
		c.warnf("metadata.managedFields of %s do not say who wrote the owners of the partitions: no partition is moved until a pod has written them anew", o)
	case o.PartitionTrust.Believed() || o.Ancient:
	case len(o.Record.Partitions.Problems) > 0:
		for _, p := range o.Record.Partitions.Problems {
			c.partitionf(Damaged, placement.Set{}, Finding{}, "somebody else damaged %s (%s): %s", p, o.PartitionTampering(), restore)
		}
	case o.PartitionTrust == assignment.Foreign:
		c.partitionf(Changed, placement.Set{}, Finding{}, "somebody else changed the owners of the partitions (%s): %s", o.PartitionTampering(), restore)
	case locked:
		c.partitionf(Changed, placement.Set{}, Finding{}, "%s does not say who owns which partitions although pods lock some, because somebody removed it or the workload was created again: %s", o, restore)
	}
}

// checkLocks finds partitions that two pods lock, or one whose id does not own them.
func (c *checker) checkLocks(d division) {
	twice, stray := map[[2]string][]int{}, map[string][]int{}
	for k, name := range d.locker {
		switch {
		case d.second[k] != "":
			pair := [2]string{name, d.second[k]}
			twice[pair] = append(twice[pair], k)
		case name != "" && c.divided() && !c.owns(name, k):
			stray[name] = append(stray[name], k)
		}
	}
	for pair, ks := range twice {
		set := placement.Of(ks...)
		whose := "neither works on them before one lets go"
		if c.owns(pair[0], ks[0]) {
			whose = "they belong to pod " + pair[0]
		}
		c.partitionf(PartitionTwice, set, Finding{Pod: pair[1]}, "partitions %s are locked twice: the receipts of pods %s and %s name them, and %s; a pod whose idalloc runs lets go of what is not its own "+
			"when its work has stopped; if it stays, run `kubectl delete pod %s -n %s`", set, pair[0], pair[1], whose, pair[1], c.owner.Namespace)
	}
	for name, ks := range stray {
		set, id := placement.Of(ks...), c.pods[name].receipt().ID
		c.partitionf(PartitionMismatch, set, Finding{ID: &id, Pod: name}, "pod %s locks partitions %s, and the map does not give them to it: nobody else gets them before its work on them has stopped, "+
			"and it lets go then; if it stays, see its log, and run `kubectl delete pod %s -n %s`", name, set, name, c.owner.Namespace)
	}
}

// checkUnaware finds live pods with an id that do not work on partitions. While there is one, none is given out.
func (c *checker) checkUnaware() (found bool) {
	if c.inForce().Count == 0 && c.owner.Wish.Count == 0 {
		return false
	}
	var names []string
	for id := range c.state.Slots {
		if name, live := c.holder(id); live && id < c.owner.Count && c.pods[name].unaware(id) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return false
	}
	slices.Sort(names)
	c.partitionf(PartitionWithheld, placement.Set{}, Finding{Pod: names[0]}, "no partition is given out or moved while a live pod that does not work on partitions has an id below the count: %s: "+
		"a rolling update to a revision that works on partitions ends this, so give it time with --wait; if none is under way, have the program of these pods work on partitions, or set annotation %s to \"0\"",
		few(names), assignment.PartitionCountKey)
	return true
}

// checkUnowned finds partitions of nobody. A single look cannot see since when they have been nobody's. But the row has said so since
// its epoch, by the clock of the pod that wrote it.
func (c *checker) checkUnowned(d division) {
	var ks []int
	for k, id := range d.ids {
		if id == nobody && k < c.inForce().Count && d.locker[k] == "" {
			ks = append(ks, k)
		}
	}
	if len(ks) == 0 || c.owner.Count == 0 || c.state.Partitions == nil {
		return
	}
	set, age := placement.Of(ks...), c.age(c.state.Partitions.Epoch)
	switch {
	case len(c.state.Quarantine) > 0:
		c.warnf("partitions %s belong to nobody: strict mode gives out no partition of nobody while the owner lists a quarantine, because a process that vanished might still work on it", set)
	case age > c.patience():
		c.partitionf(PartitionUnowned, set, Finding{}, "partitions %s belong to nobody, and have for %s at least, by the epoch of the map: a pod that works on partitions and has an id gives them out within seconds; "+
			"see the log of idalloc in the pods", set, age.Round(time.Second))
	default:
		c.warnf("partitions %s belong to nobody, for %s at least, by the epoch of the map: the next pod that plans gives them out; it is a finding after %s", set, age.Round(time.Second), c.patience())
	}
}

// checkAwaiting finds partitions of ids that no live pod holds. A single look cannot see when a holder died. But a slot that has no
// entry has had none since the map was written last.
func (c *checker) checkAwaiting(d division) {
	for id, owned := range c.inForce().Owners {
		if _, live := d.holder(id); live || owned.Empty() {
			continue
		}
		after := "after " + c.owner.Wish.FailoverAfter.String()
		if c.owner.Wish.FailoverAfter < 0 {
			after = assignment.Never
		}
		name, taken := c.state.Slots[id]
		_, quarantined := c.state.Quarantine.Since(id)
		switch age := c.age(c.state.Epoch); {
		case quarantined:
			c.warnf("partitions %s belong to id %d, which is in quarantine (strict mode): they stay with it until that is over", owned, id)
		case taken:
			c.warnf("partitions %s belong to id %d, whose pod %s is dead: its next holder gets them; "+
				"otherwise other ids do, %s from when a pod knew of its death, which verify cannot see (annotation %s)", owned, id, name, after, assignment.PartitionFailoverAfterKey)
		case c.owner.Wish.FailoverAfter < 0 || age <= c.owner.Wish.FailoverAfter:
			c.warnf("partitions %s belong to id %d, which no pod has, for %s at least, by the epoch of the map: its next holder gets them; otherwise other ids do, %s (annotation %s)",
				owned, id, age.Round(time.Second), after, assignment.PartitionFailoverAfterKey)
		default:
			c.partitionf(PartitionUnowned, owned, Finding{ID: &id}, "partitions %s belong to id %d, which no pod has, for %s at least, by the epoch of the map: other ids should have got them %s (annotation %s); "+
				"see why no pod has the id, and the log of idalloc in the pods that hold others", owned, id, age.Round(time.Second), after, assignment.PartitionFailoverAfterKey)
		}
	}
}

// checkPaused tells of pods that want no partitions for now.
func (c *checker) checkPaused() {
	for _, id := range c.paused() {
		why := "somebody paused it (POST /v1/pause), and it takes part again after POST /v1/resume"
		if failed := c.pods[c.state.Slots[id]].receipt().Failures(); failed > 0 {
			why = fmt.Sprintf("its program failed %d times in a row, and it takes part again after some minutes", failed)
		}
		c.warnf("pod %s with id %d is paused and works on no partitions, which other ids get: %s", c.state.Slots[id], id, why)
	}
}

// age returns how long ago an epoch was, by the clocks of this machine and of the pod that wrote it.
func (c *checker) age(epoch int64) time.Duration { return max(0, c.now.Sub(time.UnixMilli(epoch))) }

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
