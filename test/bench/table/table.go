// Package table writes down what benchmarks measured. The first line of a table is its header.
package table

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

// Print writes a table for a terminal.
func Print(out io.Writer, title string, lines [][]string) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, err := fmt.Fprintln(out, title)
	for _, line := range append(lines, nil) { // an empty line behind it
		_, e := fmt.Fprintln(t, strings.Join(append(line, ""), "\t"))
		err = errors.Join(err, e)
	}
	return errors.Join(err, t.Flush())
}

// Markdown returns a table for a page.
func Markdown(lines [][]string) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(line)) + "|\n")
		}
	}
	return b.String()
}

// CSV writes a table into a file, whose folder it makes.
func CSV(path string, lines [][]string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.Create(path) //nolint:gosec // the user's own directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return csv.NewWriter(f).WriteAll(lines)
}

// Write writes a text for a page to out and into a file, whose folder it makes.
func Write(out io.Writer, path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	_, err := io.WriteString(out, text)
	return errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
}

// Decimals returns a number with so many decimals.
func Decimals(v float64, n int) string { return strconv.FormatFloat(v, 'f', n, 64) }

// Seconds returns a time in seconds.
func Seconds(d time.Duration) string { return Decimals(d.Seconds(), 3) }

// Megabytes returns a number of bytes in megabytes.
func Megabytes(bytes float64) string { return Decimals(bytes/1e6, 2) }

// Percentile is the value below which p percent of the sorted times are, zero of none.
func Percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}
