package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Reasons why partitions are held up.
const (
	// Event: an annotation of yours on the workload is invalid, or names a strategy that the pod does not know; the message quotes it. An invalid value is
	// ignored, and an unknown strategy changes nothing.
	// Do: set a valid value.
	keysIgnored = "AnnotationIgnored"
	// Event: the pod that reports this does not know the strategy in force. It keeps its partitions and moves none.
	// Do: run one version in all pods.
	strategyUnknown = "PartitionStrategyUnknown"
	// Event: the workload's annotations have no room for a change of who owns which partitions. They stay as they are. Ids are given out as before.
	// Do: see [the size limit](operations.md#the-size-limit).
	partitionsLarge = "PartitionsTooLarge"
)

// Changes reports what this pod's writes change on the owner, what they restore there, and what holds partitions up. One goroutine may use it at a time.
type Changes struct {
	pod        string
	strategies proposal.Strategies
	happened   func(event.Event)
	// held is the last reported detail of each reason why partitions are held up.
	held map[string]string
	// named: the map has named this pod since it got its slot. listed: the row has listed its id. intact are the owner's annotations when the map last
	// named this pod.
	named, listed bool
	intact        map[string]string
}

// NewChanges returns a Changes that passes its events to happened.
func NewChanges(pod string, strategies proposal.Strategies, happened func(event.Event)) *Changes {
	return &Changes{pod: pod, strategies: strategies, happened: happened, held: map[string]string{}}
}

// Heard reads a newer version of the owner, while this pod locks the share.
func (c *Changes) Heard(owner store.Owner, mine receipt.Share) {
	if mine.Empty() {
		c.named, c.listed = false, false
		return
	}
	if owner.Record.State.Slots[mine.ID] == c.pod {
		c.named, c.intact = true, owner.Annotations
	}
	c.listed = c.listed || mine.Of > 0 && owner.Record.State.Row != nil
}

// news reports whether the detail of a reason differs from the last reported one. An empty detail means that nothing is held up.
func (c *Changes) news(reason, detail string) bool {
	before := c.held[reason]
	c.held[reason] = detail
	return detail != before && detail != ""
}

// Wish reports the user's invalid annotations about partitions, and whether this process knows the strategy in force. Each process that works on partitions
// logs it, and the holder of one id writes an Event.
func (c *Changes) Wish(owner store.Owner, id int) {
	for reason, detail := range map[string]string{keysIgnored: c.ignored(owner), strategyUnknown: c.unknownStrategy(owner)} {
		if c.news(reason, detail) {
			c.happened(event.PartitionsHeldUp{About: owner.About(), Reason: reason, Detail: detail, Unannounced: !speaks(owner, id)})
		}
	}
}

// ignored describes the user's annotations that are invalid, empty if there are none.
func (c *Changes) ignored(owner store.Owner) string {
	var parts []string
	for _, p := range owner.Wish.Problems {
		parts = append(parts, p.Error()+": the value is invalid and is ignored")
	}
	row, name := owner.Record.State.Row, owner.Wish.Strategy
	if name != "" && (row == nil || row.Strategy != name) {
		if _, err := c.strategies(name); err != nil {
			parts = append(parts, assignment.ProblemError{Key: assignment.PartitionStrategyKey, Detail: err.Error()}.Error()+": it changes nothing")
		}
	}
	return strings.Join(parts, "; ")
}

// unknownStrategy describes a strategy in force that this process does not know, empty if it knows it.
func (c *Changes) unknownStrategy(owner store.Owner) string {
	row := owner.Record.State.Row
	if row == nil {
		return ""
	}
	if _, err := c.strategies(row.Strategy); err != nil {
		return fmt.Sprintf("strategy %s is in force, and this process does not know it: it keeps its partitions and moves none", row.Strategy)
	}
	return ""
}

// speaks reports whether the holder of the id is the one holder that writes an Event about what all of them see.
func speaks(owner store.Owner, id int) bool {
	members := owner.Record.State.Slots.IDs()
	if row := owner.Record.State.Row; row != nil {
		working := slices.DeleteFunc(row.Owners.IDs(), func(id int) bool {
			_, taken := owner.Record.State.Slots[id]
			return !taken
		})
		if len(working) > 0 {
			members = working
		}
	}
	return len(members) > 0 && slices.Min(members) == id
}

// Large reports that the owner's annotations have no room for a change of the row.
func (c *Changes) Large(owner store.Owner, d proposal.Decision) {
	large := ""
	if d.PartitionsTooLarge != nil {
		large = d.PartitionsTooLarge.Error() + ": who owns which partitions stays as it is"
	}
	if c.news(partitionsLarge, large) {
		c.happened(event.PartitionsHeldUp{About: owner.About(), Reason: partitionsLarge, Detail: large})
	}
}

// Restored reports that this pod, which locks the share, restored what another program changed of idalloc's data on the owner.
func (c *Changes) Restored(before store.Owner, d proposal.Decision, mine receipt.Share) {
	was := before.Record
	// Event: Normal: idalloc's annotations on the workload were changed or removed: by `kubectl replace`, a deployment tool, a person, or `kubectl rollout
	// undo`, which restores an old copy. The pods wrote them again from their receipts, and no pod's work stopped.
	// Do: nothing after an undo. Otherwise stop the writer.
	damaged := event.Damaged{About: before.About(), Reason: "AssignmentRestored", Expected: true}
	switch {
	case len(was.Problems) > 0:
		damaged.Expected = false
		details := make([]string, 0, len(was.Problems))
		for _, p := range was.Problems {
			details = append(details, p.Error())
		}
		// Event: idalloc's annotations on the workload were changed, and a value could not be read; the message quotes it. The pods wrote them again from
		// their receipts.
		// Do: stop the writer.
		damaged.Reason = "AssignmentDamaged"
		damaged.Detail = strings.Join(details, "; ") + ": written again as the pods' receipts say"
	case c.named && was.State.Slots[mine.ID] != c.pod:
		damaged.Detail = fmt.Sprintf("annotation %s was changed or removed: written again as the pods' receipts say", assignment.Key)
	case mine.Of > 0 && was.State.Row == nil && c.listed && d.Next.Row != nil:
		damaged.Detail = fmt.Sprintf("annotation %s was removed: written again as the pods' receipts say", assignment.PartitionOwnersKey)
	default:
		return
	}
	taken := takenWith(c.intact, before.Annotations)
	damaged.Expected = damaged.Expected && taken == ""
	damaged.Detail += cmp.Or(taken, "; no work stopped")
	c.happened(damaged)
}

// takenWith describes the user's annotations that changed in the same write as idalloc's, as kubectl replace and kubectl rollout undo do.
func takenWith(intact, now map[string]string) (text string) {
	for _, key := range []string{
		assignment.PartitionCountKey, assignment.PartitionStrategyKey, assignment.PartitionFailoverAfterKey, assignment.PartitionGiveBackAfterKey,
		assignment.PartitionTargetKey,
	} {
		was, there := intact[key]
		switch is, still := now[key]; {
		case there && !still:
			text += fmt.Sprintf("; the same write removed %s, which was %q: set it again if it is still to hold", key, was)
		case there && is != was:
			text += fmt.Sprintf("; the same write set %s from %q to %q, which holds now", key, was, is)
		}
	}
	return text
}

// Wrote reports what this pod's write changed. vacant returns how long an id has had no holder.
func (c *Changes) Wrote(before store.Owner, d proposal.Decision, vacant func(id int) time.Duration) {
	c.happened(event.Written{Filled: d.Filled, Freed: d.Freed, Asked: d.HandOver.Asked})
	c.Large(before, d)
	if !d.Partitions.Changed {
		return
	}
	if was, is := division(before.Record.State.Row), division(d.Next.Row); was != is {
		c.happened(event.PartitionsInForce{About: before.About(), Old: was, New: is})
	}
	if given, taken := total(d.Partitions.Gained), total(d.Partitions.Lost); given+taken > 0 {
		c.happened(event.PartitionsMoved{Given: given, Taken: taken})
	}
	var from []event.Failover
	for _, lost := range d.Partitions.FailedOver {
		f := event.Failover{ID: lost.ID, Partitions: lost.Set.String(), After: vacant(lost.ID)}
		for _, gained := range d.Partitions.Gained {
			if !gained.Set.Intersect(lost.Set).Empty() {
				f.To = append(f.To, gained.ID)
			}
		}
		from = append(from, f)
	}
	if len(from) > 0 {
		c.happened(event.FailedOver{About: before.About(), From: from})
	}
}

func division(p *assignment.Row) event.Division {
	if p == nil {
		return event.Division{}
	}
	return event.Division{Count: p.Count, Strategy: p.Strategy}
}

func total(changes []proposal.Owned) (n int) {
	for _, c := range changes {
		n += c.Set.Len()
	}
	return n
}
