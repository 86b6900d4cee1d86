package proposal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/placement"
)

// tell returns a decision in words: a line of what is written, and a line of what else is told. What is zero is left out.
func tell(in Input, d Decision) string {
	lines := []string{strings.Join(writes(in, d.Next), ", ")}
	if told := tells(in, d); len(told) > 0 {
		lines = append(lines, "tells "+strings.Join(told, ", "))
	}
	return strings.Join(lines, "\n")
}

// phrases are the parts of a line.
type phrases []string

func (p *phrases) addf(is bool, format string, args ...any) {
	if is {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

func writes(in Input, next *assignment.State) phrases {
	if next == nil {
		return phrases{"writes nothing"}
	}
	var p phrases
	p.addf(len(next.Slots) > 0, "writes%s", entries(next.Slots))
	p.addf(len(next.Slots) == 0, "writes an empty map")
	p.addf(len(next.Handover) > 0, "requests%s", entries(next.Handover))
	if now := next.Row; now != nil && !now.Same(in.State.Row) {
		p.addf(true, "partitions %d %s%s", now.Count, now.Strategy, entries(now.Owners))
	}
	p.addf(next.Row == nil && in.State.Row != nil, "no partitions")
	return p
}

func tells(in Input, d Decision) phrases {
	var p phrases
	h := d.HandOver
	p.addf(len(d.Freed) > 0, "freed%s", changes(d.Freed))
	p.addf(len(d.Filled) > 0, "filled%s", changes(d.Filled))
	p.addf(len(h.Asked) > 0, "asked%s", changes(h.Asked))
	p.addf(h.Limit+h.UnderWay+h.Older+h.Able > 0, "hand-overs %d of %d, %d of %d older holders hand over", h.UnderWay, h.Limit, h.Able, h.Older)
	if e := d.TooLarge; e != nil {
		p.addf(true, "too large by %d B", e.Size-e.Limit)
	}
	p.addf(len(d.Overdue) > 0, "overdue%s", changes(d.Overdue))
	p.addf(len(d.Foreign) > 0, "foreign%s", changes(d.Foreign))
	p.addf(d.WhyNot != "" && d.WhyNot != WhyNotFree, "why not %q", d.WhyNot)
	p.addf(d.Waiting != 0, "waiting %d", d.Waiting)
	p.addf(d.Scarce, "scarce")
	p.addf(d.Reserved != 0, "reserved %d", d.Reserved)
	p.addf(len(d.Partitions.FailedOver) > 0, "failed over%s", moved(d.Partitions.FailedOver))
	p.addf(d.Partitions.Unknown != "", "unknown strategy %s", d.Partitions.Unknown)
	p.addf(d.PartitionsTooLarge != nil, "no room for partitions")
	p.addf(d.Live != len(in.Pods), "live %d", d.Live)
	return p
}

// entries returns what each id has.
func entries[V any](of map[int]V) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&b, " %d=%s", id, strings.ReplaceAll(fmt.Sprint(of[id]), ",", "+"))
	}
	return b.String()
}

func changes(all []Change) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, " %d=%s", c.ID, c.Pod)
		if c.Cause != "" {
			fmt.Fprintf(&b, "(%s)", c.Cause)
		}
	}
	return b.String()
}

func moved(all []Owned) string {
	owners := placement.Owners{}
	for _, o := range all {
		owners[o.ID] = o.Set
	}
	return entries(owners)
}
