package inspect

import (
	"fmt"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/placement"
)

// checkRequests finds requests that nobody can meet any more, and pods that do not give what they are asked for.
func (c *checker) checkRequests() {
	for _, id := range c.state.Handover.IDs() {
		name := c.state.Handover[id]
		if why := c.idleRequest(id, name); why != "" {
			c.warnf("the request of pod %s for id %d cannot be met any more (%s): the next pod that plans drops it", name, id, why)
			continue
		}
		since, known := c.unchanged()
		if holder, locks := c.holder(id); locks && known && since >= stopsWithin {
			c.notStoppedf(id, holder, "pod %s was asked for id %d %s ago at least, and pod %s waits for it", holder, id, since.Round(time.Second), name)
		}
	}
}

// idleRequest says why a request cannot be met, empty if it can.
func (c *checker) idleRequest(id int, name string) string {
	p, exists := c.pods[name]
	held, holds := c.state.Slots.Of(name)
	switch {
	case id >= c.owner.Count:
		return fmt.Sprintf("the count is %d", c.owner.Count)
	case !exists || !p.live() || p.Terminating:
		return "the pod is dead or Terminating"
	case holds:
		return fmt.Sprintf("the pod has id %d", held)
	}
	return ""
}

// notStoppedf finds that a pod does not stop its work. A Terminating pod is Kubernetes' to stop, and lost after that.
func (c *checker) notStoppedf(id int, name, format string, args ...any) {
	if !c.pods[name].Terminating {
		c.findf(NotStopped, id, name, "%s: its work was told to stop and goes on, so it keeps the id: its log says why; repair what stops the work, or run %s",
			fmt.Sprintf(format, args...), c.deletion(name))
	}
}

// checkMoves finds pods with an id at or above the count that do not move. A condemned pod keeps its id until Kubernetes removes it.
func (c *checker) checkMoves() {
	since := c.settled()
	for id, lockers := range c.lockers {
		for _, p := range lockers {
			if id >= c.owner.Count && !p.Condemned && since >= stopsWithin {
				c.notStoppedf(id, p.Name, "the count has been %d for %s at least, and pod %s has id %d", c.owner.Count, since.Round(time.Second), p.Name, id)
			}
		}
	}
}

// settled returns for how long at least nobody but controllers has changed what the owner says, 0 if the server does not say.
func (n snapshot) settled() time.Duration {
	if n.changed.IsZero() {
		return 0
	}
	return max(0, n.now.Sub(n.changed))
}

// checkWork finds partitions that a pod should have let go of, or taken.
func (c *checker) checkWork(d division) {
	stopping, idle := map[string][]int{}, map[string][]int{}
	for k := range d.ids {
		s := d.at(k)
		if s.id == nobody || d.second[k] != "" || !c.pods[s.pod].divides() && !c.pods[s.pod].abstains() {
			continue
		}
		switch {
		case s.state == Stopping && c.owns(s.pod, k): // the row gives it to the pod, and the target does not
			stopping[s.pod] = append(stopping[s.pod], k)
		case d.locker[k] == "":
			idle[s.pod] = append(idle[s.pod], k)
		}
	}
	for name, ks := range stopping {
		set, id := placement.Of(ks...), c.pods[name].Receipt.Slot()
		if since := c.settled(); since >= stopsWithin && !c.pods[name].Terminating {
			c.partitionf(NotStopped, set, Finding{ID: &id, Pod: name}, "pod %s with id %d works on partitions %s, which another id is to have, and that has been so for %s at least: "+
				"its work was told to stop and goes on: its log says why; repair what stops the work, or run %s", name, id, set, since.Round(time.Second), c.deletion(name))
		}
	}
	for name, ks := range idle {
		c.checkIdle(c.pods[name], placement.Of(ks...))
	}
}

// checkIdle finds partitions that nobody works on although the pod of their id lives. Both annotations have said so since they were written.
func (c *checker) checkIdle(p pod, set placement.Set) {
	since := c.now.Sub(slices.MaxFunc([]time.Time{c.written, p.written}, time.Time.Compare))
	if c.written.IsZero() || p.written.IsZero() || since < settlesWithin || !c.someoneWorks() || p.Receipt.Strict && c.leaseCounts() {
		return
	}
	id := p.Receipt.Slot()
	c.partitionf(PartitionNotTaken, set, Finding{ID: &id, Pod: p.Name}, "nobody works on partitions %s, for %s at least: they belong to id %d, and pod %s, which has it, does not lock them: "+
		"the pod takes them, or a pod that lacks them moves them, within seconds; if it stays, see the log of idalloc in the pods", set, since.Round(time.Second), id, p.Name)
}

// leaseCounts reports whether a pod that does not live has a Lease that counts, which may lock partitions.
func (n snapshot) leaseCounts() bool {
	for _, l := range n.leases.held {
		if !n.lives(l) && ends(l).After(n.now) {
			return true
		}
	}
	return false
}
