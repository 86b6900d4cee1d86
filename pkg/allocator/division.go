package allocator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/ownership"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
)

// Reasons for which partitions are held up.
const (
	keysIgnored        = "PartitionKeysIgnored"
	strategyUnknown    = "PartitionStrategyUnknown"
	partitionsLarge    = "PartitionsTooLarge"
	partitionsWithheld = "PartitionsWithheld"
)

// heldUp is what was told last of each reason for which partitions are held up.
type heldUp map[string]string

// news reports whether the detail of a reason is other than what was told last. An empty one says that nothing is held up.
func (h *heldUp) news(reason, detail string) bool {
	if (*h)[reason] == detail {
		return false
	}
	if *h == nil {
		*h = heldUp{}
	}
	(*h)[reason] = detail
	return detail != ""
}

// tellWish tells which of the user's annotations about partitions make no sense, and whether this process knows the strategy in
// force. Each process logs it, and one of them leaves an Event.
func (h *holding) tellWish(view store.Owner) {
	tell := func(reason, detail string) {
		if h.heldUp.news(reason, detail) {
			h.happened.Tell(event.PartitionsHeldUp{About: view.About(), Reason: reason, Detail: detail, Unannounced: !speaks(view, h.held.id)})
		}
	}
	tell(keysIgnored, ignored(view, h.shares.strategy))
	tell(strategyUnknown, unknownStrategy(view, h.shares.strategy))
}

// ignored says which of the user's annotations do not count because they make no sense, empty if all do.
func ignored(view store.Owner, strategy finder) string {
	var parts []string
	for _, p := range view.Wish.Problems {
		parts = append(parts, p.Error()+": it counts as absent")
	}
	row, name := view.Record.State.Partitions, view.Wish.Strategy
	if name != "" && (row == nil || row.Strategy != name) {
		if _, err := strategy(name); err != nil {
			parts = append(parts, assignment.ProblemError{Key: assignment.PartitionStrategyKey, Detail: strings.TrimPrefix(err.Error(), "idalloc: ")}.Error()+": it changes nothing")
		}
	}
	return strings.Join(parts, "; ")
}

// unknownStrategy says that this process does not know the strategy in force, empty if it does.
func unknownStrategy(view store.Owner, strategy finder) string {
	row := view.Record.State.Partitions
	if row == nil || !view.PartitionTrust.Believed() {
		return ""
	}
	if _, err := strategy(row.Strategy); err != nil {
		return fmt.Sprintf("strategy %s is in force, and this process does not know it: it keeps its partitions and moves none", row.Strategy)
	}
	return ""
}

// speaks reports whether the holder of the id is the one of all holders that leaves an Event of what all of them see.
func speaks(view store.Owner, id int) bool {
	members := view.Record.State.Slots.IDs()
	if row := view.Record.State.Partitions; row != nil {
		working := slices.DeleteFunc(row.Owners.IDs(), func(id int) bool {
			_, taken := view.Record.State.Slots[id]
			return !taken
		})
		if len(working) > 0 {
			members = working
		}
	}
	return len(members) > 0 && slices.Min(members) == id
}

// tellHeldUp tells why a plan moves fewer partitions than it should.
func (a *Allocator) tellHeldUp(owner store.Owner, d plan.Decision) {
	large, withheld := "", ""
	if d.PartitionsTooLarge != nil {
		large = d.PartitionsTooLarge.Detail() + ": who owns which partitions stays as it is"
	}
	if d.Partitions.Withheld {
		withheld = "partitions are given out and moved only when no live pod that does not work on partitions has an id any more"
	}
	if a.heldUp.news(partitionsLarge, large) {
		a.happened.Tell(event.PartitionsHeldUp{About: owner.About(), Reason: partitionsLarge, Detail: large})
	}
	if a.heldUp.news(partitionsWithheld, withheld) { // each first rollout does this
		a.happened.Tell(event.PartitionsHeldUp{About: owner.About(), Reason: partitionsWithheld, Detail: withheld, Unannounced: true})
	}
}

// tellDivision tells what this pod's write changed about partitions.
func (a *Allocator) tellDivision(owner store.Owner, d plan.Decision, census gc.Census) {
	if !d.Partitions.Changed {
		return
	}
	inUse := slices.ContainsFunc(census.Live, func(p plan.Pod) bool {
		return p.Receipt.Locks() && p.Receipt.Partitions != nil && !p.Receipt.Partitions.Empty()
	})
	fresh := owner.PartitionTrust == assignment.Absent && !inUse
	if was, is := division(owner.Record.State.Partitions), division(d.Next.Partitions); was != is && (fresh || owner.PartitionTrust.Believed()) {
		a.happened.Tell(event.PartitionsInForce{About: owner.About(), Old: was, New: is})
	}
	if given, taken := total(d.Partitions.Gained), total(d.Partitions.Lost); given+taken > 0 {
		a.happened.Tell(event.PartitionsMoved{Epoch: d.Next.Epoch, Given: given, Taken: taken})
	}
	if from := failovers(d.Partitions, a.vacancies.since, a.clock.Now()); len(from) > 0 {
		a.happened.Tell(event.FailedOver{About: owner.About(), From: from})
	}
	if !fresh {
		a.tellForeignPartitions(owner)
	}
}

// division returns what is in force.
func division(p *assignment.Partitions) event.Division {
	if p == nil {
		return event.Division{}
	}
	return event.Division{Count: p.Count, Strategy: p.Strategy}
}

// total returns the number of partitions in the changes.
func total(changes []ownership.Change) (n int) {
	for _, c := range changes {
		n += c.Set.Len()
	}
	return n
}

// failovers returns what the ids lost that nobody has held for long. since is when this process knew that they have no holder.
func failovers(d ownership.Decision, since map[int]time.Time, now time.Time) []event.Failover {
	from := make([]event.Failover, 0, len(d.FailedOver))
	for _, lost := range d.FailedOver {
		f := event.Failover{ID: lost.ID, Partitions: lost.Set.String(), After: now.Sub(since[lost.ID])}
		for _, gained := range d.Gained {
			if !gained.Set.Intersect(lost.Set).Empty() {
				f.To = append(f.To, gained.ID)
			}
		}
		from = append(from, f)
	}
	return from
}

// tellForeignPartitions reports what somebody else changed about the owners of the partitions, and this pod has just restored.
func (a *Allocator) tellForeignPartitions(owner store.Owner) {
	if owner.PartitionTrust.Believed() || owner.Ancient || owner.Undone() { // an undo brings back the old copy of both, and is told once
		return
	}
	by := owner.PartitionTampering()
	damaged := event.Damaged{About: owner.About(), Reason: "PartitionsChanged", Detail: by + ": the owners of the partitions were restored from the pods' receipts"}
	if problems := owner.Record.Partitions.Problems; len(problems) > 0 {
		details := make([]string, 0, len(problems))
		for _, p := range problems {
			details = append(details, p.Error())
		}
		damaged.Reason, damaged.Detail = "PartitionsDamaged", strings.Join(details, "; ")+" ("+by+"): restored from the pods' receipts"
	}
	a.happened.Tell(damaged)
}
