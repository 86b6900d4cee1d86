package state

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// Table prints the state: the decision, and a row for each id or for each partition.
func (s State) Table(out io.Writer, now time.Time, partitions bool) error {
	load := fmt.Sprintf("%.4g units/s, measured %s ago", s.Load, now.Sub(s.LoadAt).Round(time.Second))
	if s.LoadAt.IsZero() {
		load = "not known"
	}
	_, err := fmt.Fprintf(out, "%s: %d pods, %d wanted, of %.4g units/s each; load %s\n%s %s ago: %s\n",
		s.Owner, s.Pods, s.PodsWanted, s.Capacity, load, s.Phase, now.Sub(s.At).Round(time.Second), s.Why)
	if err == nil && s.Error != "" {
		_, err = fmt.Fprintf(out, "error: %s\n", s.Error)
	}
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	rows := s.ids
	if partitions {
		rows = s.partitions
	}
	for _, row := range rows() {
		if _, err := fmt.Fprintln(w, row); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (s State) ids() []string {
	rows := append(make([]string, 0, 1+len(s.IDs)), "ID\tLOAD\tUSED\tPARTITIONS\tREMARK")
	for _, id := range s.IDs {
		parts := id.Partitions
		if parts == "" {
			parts = "-"
		}
		rows = append(rows, fmt.Sprintf("%d\t%.4g\t%.0f%%\t%s\t%s", id.ID, id.Load, 100*id.Load/s.Capacity, parts, id.Absent))
	}
	return rows
}

func (s State) partitions() []string {
	rows := append(make([]string, 0, 1+len(s.Partitions)), "PARTITION\tID\tTARGET\tLOAD")
	who := func(id *int) string {
		if id == nil {
			return "-"
		}
		return strconv.Itoa(*id)
	}
	for _, p := range s.Partitions {
		load := "?"
		if p.Load != nil {
			load = fmt.Sprintf("%.4g", *p.Load)
		}
		rows = append(rows, fmt.Sprintf("%d\t%s\t%s\t%s", p.Partition, who(p.ID), who(p.Target), load))
	}
	return rows
}
