package inspect

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
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
			line += fmt.Sprintf("\t%s\t%s\t%s", dash(s.phase()), dash(s.epoch()), dash(s.Requester))
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

func (s Slot) epoch() string {
	if s.Receipt == 0 {
		return ""
	}
	return strconv.FormatInt(s.Receipt, 10)
}

func dash(s string) string { return cmp.Or(s, "-") }
