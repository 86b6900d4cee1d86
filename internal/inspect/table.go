package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Columns are the titles of a table. Wide are those of a wide table only.
type Columns struct{ Always, Wide []string }

// SlotColumns returns the titles of the cells of Slot.Cells.
func SlotColumns() Columns {
	return Columns{Always: []string{"ID", "POD", "REVISION", "NODE", "STATE", "AGE"}, Wide: []string{"PHASE", "REQUESTER", "ASSIGN", "LEASE"}}
}

// PartitionColumns returns the titles of the cells of PartitionRange.Cells.
func PartitionColumns() Columns {
	return Columns{Always: []string{"PARTITIONS", "ID", "POD", "STATE", "FOR"}, Wide: []string{"NODE"}}
}

// Cells returns the slot's row of a wide table. Ages are relative to now.
func (s Slot) Cells(now time.Time) []string {
	age := "-"
	if s.Since != nil { // clocks differ
		age = duration.HumanDuration(max(0, now.Sub(s.Since.Time)))
	}
	return []string{strconv.Itoa(s.ID), dash(s.Pod), dash(s.Revision), dash(s.Node), s.state(), age, dash(s.phase()), dash(s.Requester), dash(s.Assign), dash(s.lease(now))}
}

// Cells returns the range's row of a wide table. The column FOR is relative to now.
func (r PartitionRange) Cells(now time.Time) []string {
	id, since := "-", "-"
	if r.ID != nil {
		id = strconv.Itoa(*r.ID)
	}
	if r.Since != nil { // it may be longer
		since = ">" + duration.HumanDuration(max(0, now.Sub(r.Since.Time)))
	}
	return []string{dash(r.Partitions), id, dash(r.Pod), string(r.State), since, dash(r.Node)}
}

// Rows returns a row of a wide table for each slot. Ages are relative to now.
func (v View) Rows(now time.Time) [][]string { return rows(v.Slots, now) }

// Rows returns a row of a wide table for each range. The column FOR is relative to now.
func (v PartitionView) Rows(now time.Time) [][]string { return rows(v.Ranges, now) }

func rows[T interface{ Cells(now time.Time) []string }](all []T, now time.Time) [][]string {
	cells := make([][]string, 0, len(all))
	for _, one := range all {
		cells = append(cells, one.Cells(now))
	}
	return cells
}

// None returns a sentence for a workload without partitions.
func (v PartitionView) None() string {
	if v.wanted > 0 {
		return fmt.Sprintf("%s in namespace %s has no partitions in force: annotation %s asks for %d", v.Owner, v.Namespace, assignment.PartitionCountKey, v.wanted)
	}
	return fmt.Sprintf("%s in namespace %s has no partitions: set annotation %s to the number that you want", v.Owner, v.Namespace, assignment.PartitionCountKey)
}

// Write writes rows of a wide table in kubectl's style.
func (c Columns) Write(w io.Writer, rows [][]string, wide, titled bool) error {
	titles := slices.Clone(c.Always)
	if wide {
		titles = append(titles, c.Wide...)
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	if titled {
		rows = append([][]string{titles}, rows...)
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(t, strings.Join(row[:len(titles)], "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// state returns the state for the table. For a held slot it also shows whether its pod is about to leave it.
func (s Slot) state() string {
	switch {
	case s.Moving:
		return string(Moving)
	case s.Terminating && s.State == Held:
		return string(Ending)
	}
	return string(s.State)
}

func (s Slot) phase() string {
	if s.Terminating {
		return "Terminating"
	}
	return s.Phase
}

// lease returns how long the Lease is valid without a renewal, after the name of its pod if that is not the live pod of the slot. With a zero now it returns
// only that name.
func (s Slot) lease(now time.Time) string {
	if s.Lease == nil {
		return ""
	}
	var words []string
	if s.Lease.Gone || s.Lease.Pod != s.Pod {
		words = append(words, "of "+s.Lease.Pod)
	}
	switch left := s.Lease.Ends.Sub(now); {
	case now.IsZero():
	case left <= 0:
		words = append(words, "over")
	default:
		words = append(words, duration.HumanDuration(left))
	}
	return strings.Join(words, " ")
}

func dash(s string) string { return cmp.Or(s, "-") }
