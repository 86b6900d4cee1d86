package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
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
	p.addf(len(next.Slots) > 0, "writes%s", entries(in, *next))
	p.addf(len(next.Slots) == 0, "writes an empty map")
	p.addf(len(next.Handover) > 0, "requests%s", entries(in, assignment.State{Slots: next.Handover}))
	p.addf(len(next.Quarantine) > 0, "quarantine%s", spans(next.Quarantine))
	p.addf(next.FenceAfter != 0, "fence-after %s", short(next.FenceAfter))
	if now := next.Partitions; now != nil && (!now.Same(in.State.Partitions) || now.Epoch == next.Epoch) {
		p.addf(true, "partitions %s", owners(now))
	}
	p.addf(next.Partitions == nil && in.State.Partitions != nil, "no partitions")
	epoch := epochText(next.Epoch)
	p.addf(epoch != "now", "epoch %s", epoch)
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
		p.addf(true, "too large by %d B, room for %d entries", e.Size-e.Limit, e.Fits)
	}
	p.addf(len(d.Overdue) > 0, "overdue%s", changes(d.Overdue))
	p.addf(d.Waiting != 0, "waiting %d", d.Waiting)
	p.addf(d.Scarce, "scarce")
	p.addf(d.Stranded, "stranded")
	p.addf(d.Reserved != 0, "reserved %d", d.Reserved)
	p.addf(d.Quarantined != 0, "in quarantine %d", d.Quarantined)
	p.addf(d.FenceAfter != 0, "largest fence-after %s", short(d.FenceAfter))
	p.addf(d.Partitions.Withheld, "partitions withheld")
	p.addf(d.Partitions.Unknown != "", "unknown strategy %s", d.Partitions.Unknown)
	p.addf(d.PartitionsTooLarge != nil, "no room for partitions")
	p.addf(d.Live != len(in.Pods), "live %d", d.Live)
	return p
}

// entries returns the map, and marks entries whose UID is not their pod's.
func entries(in Input, s assignment.State) string {
	var b strings.Builder
	for _, id := range s.Slots.IDs() {
		name := s.Slots[id]
		fmt.Fprintf(&b, " %d=%s", id, name)
		if p := podNamed(in, name); s.UIDs != nil && s.UIDs[id] != assignment.ShortUID(p.UID) {
			fmt.Fprintf(&b, "(UID %s)", s.UIDs[id])
		}
	}
	return b.String()
}

// owners returns what is in force and who owns what, as a line of a case says it.
func owners(now *assignment.Partitions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", now.Count, now.Strategy)
	for _, id := range now.Owners.IDs() {
		fmt.Fprintf(&b, " %d=%s", id, strings.ReplaceAll(now.Owners[id].String(), ",", "+"))
	}
	if !now.Paused.Empty() {
		fmt.Fprintf(&b, " paused %s", strings.ReplaceAll(now.Paused.String(), ",", "+"))
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

func spans(q assignment.Quarantine) string {
	var b strings.Builder
	for _, s := range q {
		fmt.Fprintf(&b, " %d", s.From)
		if s.To != s.From {
			b.WriteString("-" + strings.Replace(strconv.Itoa(s.To), strconv.Itoa(assignment.MaxID), "max", 1))
		}
		b.WriteString("@" + epochText(s.Epoch))
	}
	return b.String()
}

// epochText tells epochs of these days from the planner's clock.
func epochText(e int64) string {
	switch d := e - t0.UnixMilli(); {
	case d == 0:
		return "now"
	case d > -1000 && d < 1000:
		return fmt.Sprintf("now%+d", d)
	}
	return strconv.FormatInt(e, 10)
}

// short leaves out minutes and seconds that are zero.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
