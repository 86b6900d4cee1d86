package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func claimLines(results []result) [][]string {
	lines := make([][]string, 1, 1+len(results))
	lines[0] = []string{
		"N", "protocol", "got an id", "total s", "p50 s", "p99 s", "all requests", "owner writes", "conflicts", "429", "received MB", "server CPU s", "pods CPU s",
	}
	for _, r := range results {
		lines = append(lines, []string{
			strconv.Itoa(r.n), r.protocol, strconv.Itoa(r.got), seconds(r.took), seconds(r.p50), seconds(r.p99), strconv.Itoa(r.counts.total),
			strconv.Itoa(r.counts.writes), strconv.Itoa(r.counts.conflicts), strconv.Itoa(r.counts.refused), megabytes(float64(r.counts.received)),
			decimals(r.server.cpu), seconds(r.cpu),
		})
	}
	return lines
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

func megabytes(bytes float64) string { return decimals(bytes / 1e6) }

func decimals(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

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

// save writes lines, of which the first is the header, as CSV into the directory of -out, if there is one.
func (o options) save(name string, lines [][]string) (err error) {
	if o.dir == "" {
		return nil
	}
	if err := os.MkdirAll(o.dir, 0o750); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(o.dir, name+".csv")) //nolint:gosec // the user's own directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return csv.NewWriter(f).WriteAll(lines)
}
