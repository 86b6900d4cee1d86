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

func (s size) String() string { return fmt.Sprintf("%d × %d", s.partitions, s.members) }

// markdownOfCosts returns a table for each size.
func markdownOfCosts(costs []cost) string {
	var b strings.Builder
	for i, c := range costs {
		if i == 0 || c.size != costs[i-1].size {
			if i > 0 {
				b.WriteByte('\n')
			}
			_, _ = fmt.Fprintf(&b, "%d partitions, %d members:\n\n", c.partitions, c.members)
			b.WriteString("| script | strategy | balance degree | stickiness | moves | of the ideal | a step takes | largest map |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
		}
		_, _ = fmt.Fprintf(&b, "| %s | %s | %.2f | %.3f | %d | %.2f | %s | %d B |\n",
			c.script, c.contender, c.balance, c.stickiness, c.moves, c.overIdeal(), short(c.took), c.bytes)
	}
	return b.String()
}

func markdownOfTimes(times []duration) string {
	var b strings.Builder
	b.WriteString("| partitions × members | change | strategy | moves | time | times sticky |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, d := range times {
		_, _ = fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %.1f |\n", d.size, d.change, d.contender, d.moves, short(d.took), d.times)
	}
	return b.String()
}

// overIdeal returns how many times the ideal moved.
func (c cost) overIdeal() float64 { return float64(c.moves) / float64(c.ideal) }

// short returns a time with about three digits.
func short(d time.Duration) string {
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

func rowsOfCosts(costs []cost) [][]string {
	rows := make([][]string, 1, 1+len(costs))
	rows[0] = []string{"partitions", "members", "script", "strategy", "steps", "balance_degree", "stickiness", "moves", "ideal", "seconds_per_step", "largest_map_bytes"}
	for _, c := range costs {
		rows = append(rows, []string{
			strconv.Itoa(c.partitions), strconv.Itoa(c.members), c.script, c.contender, strconv.Itoa(c.steps),
			number(c.balance), number(c.stickiness), strconv.Itoa(c.moves), strconv.Itoa(c.ideal), number(c.took.Seconds()), strconv.Itoa(c.bytes),
		})
	}
	return rows
}

func rowsOfTimes(times []duration) [][]string {
	rows := make([][]string, 1, 1+len(times))
	rows[0] = []string{"partitions", "members", "change", "strategy", "moves", "seconds", "times_sticky"}
	for _, d := range times {
		rows = append(rows, []string{
			strconv.Itoa(d.partitions), strconv.Itoa(d.members), d.change, d.contender, strconv.Itoa(d.moves), number(d.took.Seconds()), number(d.times),
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
