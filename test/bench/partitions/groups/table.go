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

func titles() []string {
	return []string{
		"contender", "by default", "scene", "moved", "idle p50 s", "idle max s", "stayed but rested", "rested max s", "idle in all s", "most of one member",
	}
}

// row returns the cells of a result.
func row(r result) []string {
	all := time.Duration(0)
	for _, long := range append(r.moved, r.stayed...) {
		all += long
	}
	median, longest := seconds(r.moved)
	_, rested := seconds(r.stayed)
	return []string{
		r.name, r.limits, r.scene, strconv.Itoa(len(r.moved)), median, longest, strconv.Itoa(len(r.stayed)), rested,
		strconv.FormatFloat(all.Seconds(), 'f', 1, 64), strconv.Itoa(r.most),
	}
}

// seconds returns the median and the longest of sorted times.
func seconds(times []time.Duration) (median, longest string) {
	if len(times) == 0 {
		return "–", "–"
	}
	text := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) }
	return text(times[len(times)/2]), text(times[len(times)-1])
}

func rows(results []result) [][]string {
	lines := make([][]string, 1, 1+len(results))
	lines[0] = titles()
	for _, r := range results {
		lines = append(lines, row(r))
	}
	return lines
}

func markdown(results []result) string {
	var b strings.Builder
	for i, line := range rows(results) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(line)) + "|\n")
		}
	}
	return b.String()
}

func writeCSV(path string, rows [][]string) (err error) {
	f, err := os.Create(path) //nolint:gosec // the user's own file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return csv.NewWriter(f).WriteAll(rows)
}
