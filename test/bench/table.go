package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// column is one figure of a result, in the units of its title.
type column struct {
	title string
	value func(result) float64
	// digits after the point.
	digits int
}

// claimColumns are the columns after N and protocol. The titles are what the plot reads.
func claimColumns() []column {
	const mb = 1e6
	seconds := func(d time.Duration) float64 { return d.Seconds() }
	by := func(verb string) column {
		return column{verb, func(r result) float64 { return float64(r.counts.verbs[verb]) }, 0}
	}
	return []column{
		{"got an id", func(r result) float64 { return float64(r.got) }, 0},
		{"total s", func(r result) float64 { return seconds(r.took) }, 3},
		{"p50 s", func(r result) float64 { return seconds(r.p50) }, 3},
		{"p99 s", func(r result) float64 { return seconds(r.p99) }, 3},
		{"first list s", func(r result) float64 { return seconds(r.counts.listed) }, 3},
		{"first write s", func(r result) float64 { return seconds(r.counts.written) }, 3},
		by("GET"), by("LIST"), by("WATCH"), by("PATCH"), by("PUT"), by("POST"),
		{"all requests", func(r result) float64 { return float64(r.counts.total) }, 0},
		{"owner writes", func(r result) float64 { return float64(r.counts.writes) }, 0},
		{"pod lists", func(r result) float64 { return float64(r.counts.podLists) }, 0},
		{"conflicts", func(r result) float64 { return float64(r.counts.conflicts) }, 0},
		{"429", func(r result) float64 { return float64(r.counts.refused) }, 0},
		{"sent MB", func(r result) float64 { return float64(r.counts.sent) / mb }, 2},
		{"received MB", func(r result) float64 { return float64(r.counts.received) / mb }, 2},
		{"bodies MB", func(r result) float64 { return r.server.requests / mb }, 2},
		{"answers MB", func(r result) float64 { return r.server.answers / mb }, 2},
		{"events MB", func(r result) float64 { return r.server.events / mb }, 2},
		{"server CPU s", func(r result) float64 { return r.server.cpu }, 2},
		{"pods CPU s", func(r result) float64 { return seconds(r.cpu) }, 2},
	}
}

func claimLines(results []result) [][]string {
	columns := claimColumns()
	header := append(make([]string, 0, 2+len(columns)), "N", "protocol")
	for _, c := range columns {
		header = append(header, c.title)
	}
	lines := append(make([][]string, 0, 1+len(results)), header)
	for _, r := range results {
		line := append(make([]string, 0, 2+len(columns)), strconv.Itoa(r.n), r.protocol)
		for _, c := range columns {
			line = append(line, strconv.FormatFloat(c.value(r), 'f', c.digits, 64))
		}
		lines = append(lines, line)
	}
	return lines
}

func writeClaims(out io.Writer, results []result) error {
	if err := writeTable(out, "Claims at once", claimLines(results)); err != nil {
		return err
	}
	_, err := io.WriteString(out, ratios(results)+"In each of these runs no id went to two pods, and what the API server had at the end was what the pods believed.\n\n")
	return err
}

// writeTable writes lines, of which the first is the header.
func writeTable(out io.Writer, title string, lines [][]string) error {
	if _, err := fmt.Fprintln(out, title); err != nil {
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range lines {
		if _, err := fmt.Fprintln(t, strings.Join(line, "\t")+"\t"); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// ratios compares idalloc with every other protocol at the same number of pods.
func ratios(results []result) string {
	var b strings.Builder
	for _, mine := range results {
		for _, r := range results {
			if mine.protocol != (ours{}).name() || r.protocol == mine.protocol || r.n != mine.n {
				continue
			}
			incomplete := ""
			if r.got < r.n {
				incomplete = fmt.Sprintf(", when only %d had an id", r.got)
			}
			fmt.Fprintf(&b, "%d pods: idalloc took %.2f times as long as %s; %s took %.1f times as long as idalloc%s.\n",
				r.n, mine.took.Seconds()/r.took.Seconds(), r.protocol, r.protocol, r.took.Seconds()/mine.took.Seconds(), incomplete)
		}
	}
	return b.String()
}

// save writes lines, of which the first is the header, as CSV and, for documents, as Markdown into the
// directory of -out, if there is one. Markdown gets one table for each list of columns; all if there is none.
func (o options) save(name string, lines [][]string, tables ...[]string) error {
	if len(tables) == 0 {
		tables = [][]string{lines[0]}
	}
	return errors.Join(
		o.file(name+".csv", func(f io.Writer) error { return csv.NewWriter(f).WriteAll(lines) }),
		o.file(name+".md", func(f io.Writer) error {
			var err error
			for _, columns := range tables {
				_, failed := io.WriteString(f, markdown(lines, columns)+"\n")
				err = errors.Join(err, failed)
			}
			return err
		}),
	)
}

// markdown returns the columns with these titles.
func markdown(lines [][]string, columns []string) string {
	var b strings.Builder
	for i, line := range lines {
		for at, title := range lines[0] {
			if slices.Contains(columns, title) {
				b.WriteString("| " + strings.ReplaceAll(line[at], "|", "\\|") + " ")
			}
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(columns)) + "|\n")
		}
	}
	return b.String()
}

// claimTables are the tables of the claims in documents: what came out, and what it took.
func claimTables() [][]string {
	return [][]string{
		{"N", "protocol", "got an id", "total s", "p50 s", "p99 s", "all requests", "owner writes", "pod lists", "conflicts"},
		{
			"N", "protocol", "first list s", "first write s", "GET", "LIST", "WATCH", "PATCH", "PUT", "POST", "429",
			"sent MB", "received MB", "bodies MB", "answers MB", "events MB", "server CPU s", "pods CPU s",
		},
	}
}
