package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func markdownOfScores(means []score) string {
	var b strings.Builder
	b.WriteString("| step | algorithm | pods | over the bound | over the fewest | R | R, highest ids |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, m := range means {
		_, _ = fmt.Fprintf(&b, "| %d %% | %s | %.1f | %.3f | %.3f | %.1f | %.1f |\n",
			m.step, m.name, m.pods, m.overBound, m.overFewest, m.moved, m.compact)
	}
	return b.String()
}

func markdownOfTimes(times []duration) string {
	var b strings.Builder
	b.WriteString("| partitions | change | algorithm | pods | R | time |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, d := range times {
		_, _ = fmt.Fprintf(&b, "| %d | %s | %s | %d | %.1f | %s |\n",
			d.partitions, d.change, d.name, d.pods, d.moved, d.took.Round(100*time.Microsecond))
	}
	return b.String()
}

func rowsOfScores(scores []score) [][]string {
	rows := make([][]string, 1, 1+len(scores))
	rows[0] = []string{"step_percent", "seed", "algorithm", "pods", "over_bound", "over_fewest", "r", "r_highest_ids"}
	for _, s := range scores {
		rows = append(rows, []string{
			strconv.Itoa(s.step), strconv.Itoa(s.seed), s.name, number(s.pods),
			number(s.overBound), number(s.overFewest), number(s.moved), number(s.compact),
		})
	}
	return rows
}

func rowsOfTimes(times []duration) [][]string {
	rows := make([][]string, 1, 1+len(times))
	rows[0] = []string{"partitions", "change", "algorithm", "pods", "r", "seconds"}
	for _, d := range times {
		rows = append(rows, []string{
			strconv.Itoa(d.partitions), d.change, d.name, strconv.Itoa(d.pods), number(d.moved), number(d.took.Seconds()),
		})
	}
	return rows
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

func writeCSV(path string, rows [][]string) (err error) {
	f, err := os.Create(path) //nolint:gosec // the user's own file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return csv.NewWriter(f).WriteAll(rows)
}
