// Partitions compares strategies that divide partitions among members: those of pkg/placement, hashing of three kinds by published
// libraries, and the balancers of a Kafka client. All play the same scripts of members that come and go:
//
//	go -C test/bench/partitions run . -out DIRECTORY
//
// The directory gets scripts.csv and scripts.svg, what each script cost with each strategy; large.csv, how long one division
// of many partitions took; and tables.md, both as tables. What it measures are the measures of pkg/placement, and time.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	out := flag.String("out", "bin/bench", "the directory that gets tables and picture")
	large := flag.Bool("large", true, "also divide up to a million partitions, which takes minutes and some GB")
	flag.Parse()
	if err := run(*out, *large, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "partitions:", err)
		os.Exit(1)
	}
}

func run(dir string, large bool, stdout io.Writer) error {
	costs := slices.Concat(play(size{256, 16}), play(size{4096, 300}))
	var times []duration
	if large {
		times = slices.Concat(race(size{4096, 300}), race(size{50_000, 1_000}), race(size{1_000_000, 2_000}))
	}
	return write(dir, costs, times, stdout)
}

func write(dir string, costs []cost, times []duration, stdout io.Writer) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	text := markdownOfCosts(costs) + "\n" + markdownOfTimes(times)
	if _, err := io.WriteString(stdout, text); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "tables.md"), []byte(text), 0o600),
		writeCSV(filepath.Join(dir, "scripts.csv"), rowsOfCosts(costs)),
		writeCSV(filepath.Join(dir, "large.csv"), rowsOfTimes(times)),
		draw(costs, filepath.Join(dir, "scripts.svg")),
	)
}
