package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

var header = []string{"N", "protocol", "total", "p50", "p99", "GET", "LIST", "WATCH", "PATCH", "PUT", "all requests", "owner writes", "conflicts"} //nolint:gochecknoglobals // a constant that Go cannot express

func (r result) cells(duration func(time.Duration) string) []string {
	cells := []string{strconv.Itoa(r.n), r.protocol, duration(r.took), duration(r.p50), duration(r.p99)}
	for _, verb := range []string{"GET", "LIST", "WATCH", "PATCH", "PUT"} {
		cells = append(cells, strconv.Itoa(r.counts.verbs[verb]))
	}
	return append(cells, strconv.Itoa(r.counts.total), strconv.Itoa(r.counts.writes), strconv.Itoa(r.counts.conflicts))
}

func writeTable(out io.Writer, results []result) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	lines := append(make([][]string, 0, 1+len(results)), header)
	for _, r := range results {
		lines = append(lines, r.cells(func(d time.Duration) string { return d.Round(time.Millisecond).String() }))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(t, strings.Join(line, "\t")+"\t"); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, ratios(results)+"Every pod has one id, and each Deployment says the same as its pods.\n")
	return err
}

// ratios compares every other protocol with idalloc at the same number of pods.
func ratios(results []result) string {
	var b strings.Builder
	for _, base := range results {
		for _, r := range results {
			if base.protocol != (idalloc{}).name() || r.protocol == base.protocol || r.n != base.n {
				continue
			}
			fmt.Fprintf(&b, "%d pods: %s takes %.1f times as long as idalloc, sends %.1f times as many requests and writes the Deployment %.1f times as often.\n",
				r.n, r.protocol, r.took.Seconds()/base.took.Seconds(),
				float64(r.counts.total)/float64(base.counts.total), float64(r.counts.writes)/float64(base.counts.writes))
		}
	}
	return b.String()
}

// writeCSV writes times in milliseconds.
func writeCSV(out io.Writer, results []result) error {
	w := csv.NewWriter(out)
	lines := append(make([][]string, 0, 1+len(results)), header)
	for _, r := range results {
		lines = append(lines, r.cells(func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }))
	}
	return w.WriteAll(lines)
}
