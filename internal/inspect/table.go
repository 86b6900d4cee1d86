package inspect

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Table writes the view as a table in kubectl's style, with one row for each slot. now is the time from which ages are counted.
func (v View) Table(w io.Writer, now time.Time, wide bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	columns := "ID\tPOD\tREVISION\tNODE\tSTATE\tAGE"
	if wide {
		columns += "\tPHASE\tRECEIPT\tREQUESTER"
	}
	if _, err := fmt.Fprintln(t, columns); err != nil {
		return err
	}
	for _, s := range v.Slots {
		age := "-"
		if s.Since != nil {
			age = duration.HumanDuration(now.Sub(s.Since.Time))
		}
		line := fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s", s.ID, dash(s.Pod), dash(s.Revision), dash(s.Node), s.State, age)
		if wide {
			line += fmt.Sprintf("\t%s\t%s\t%s", dash(s.phase()), dash(epochText(s.Receipt)), dash(s.Requester))
		}
		if _, err := fmt.Fprintln(t, line); err != nil {
			return err
		}
	}
	return t.Flush()
}

// Table writes the view as a table in kubectl's style, with one row for each range, or one sentence if there are no partitions. now is
// the time from which the column FOR is counted.
func (v PartitionView) Table(w io.Writer, now time.Time, wide bool) error {
	if len(v.Ranges) == 0 {
		_, err := fmt.Fprintf(w, "%s in namespace %s has no partitions: annotation %s says how many there are to be\n", v.Owner, v.Namespace, assignment.PartitionCountKey)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	columns := "PARTITIONS\tID\tPOD\tSTATE\tFOR"
	if wide {
		columns += "\tNODE\tRECEIPT"
	}
	if _, err := fmt.Fprintln(t, columns); err != nil {
		return err
	}
	for _, r := range v.Ranges {
		id, since := "-", "-"
		if r.ID != nil {
			id = strconv.Itoa(*r.ID)
		}
		if r.Since != nil { // it may be longer
			since = ">" + duration.HumanDuration(max(0, now.Sub(r.Since.Time)))
		}
		line := fmt.Sprintf("%s\t%s\t%s\t%s\t%s", dash(r.Partitions), id, dash(r.Pod), r.State, since)
		if wide {
			line += fmt.Sprintf("\t%s\t%s", dash(r.Node), dash(epochText(r.Receipt)))
		}
		if _, err := fmt.Fprintln(t, line); err != nil {
			return err
		}
	}
	return t.Flush()
}

func (s Slot) phase() string {
	if s.Terminating {
		return "Terminating"
	}
	return s.Phase
}

// epochText returns the epoch of a receipt, empty if there is none.
func epochText(epoch int64) string {
	if epoch == 0 {
		return ""
	}
	return strconv.FormatInt(epoch, 10)
}

func dash(s string) string { return cmp.Or(s, "-") }
