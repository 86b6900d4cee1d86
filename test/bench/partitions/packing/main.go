// Packing compares autoscaler/packing with published algorithms by the protocol of "Kafka Consumer Group Autoscaler" (arXiv 2206.11170): 200
// partitions whose speeds walk at random between 0 and all that a pod can do, packed again after each of 500 measurements. It does the same
// with 400 partitions and pods that can do five times as much:
//
//	go -C test/bench/partitions run ./packing -out DIRECTORY
//
// The directory gets packing.csv and packing-small.csv, what each algorithm needed and moved by size of the steps and seed; packing.svg,
// the means of the first as a Pareto front; packing-large.csv, how long it took to pack 10,000 partitions; and packing.md, all as tables.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "bin/bench", "the directory that gets tables and picture")
	seeds := flag.Int("seeds", 10, "how many walks to play for each size of the steps")
	flag.Parse()
	paper := protocol{partitions: 200, measurements: 500, seeds: *seeds, hold: 1}
	small := protocol{partitions: 400, measurements: 500, seeds: (*seeds + 2) / 3, hold: 5}
	if err := run(*out, paper, small, 10_000, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "packing:", err)
		os.Exit(1)
	}
}

func run(dir string, paper, small protocol, large int, stdout io.Writer) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	scores, smaller := paper.playAll(), small.playAll()
	times := race(large)
	means := meansOf(scores)
	text := markdownOfScores(means) + "\n" + markdownOfScores(meansOf(smaller)) + "\n" + markdownOfTimes(times)
	if _, err := io.WriteString(stdout, text); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "packing.md"), []byte(text), 0o600),
		writeCSV(filepath.Join(dir, "packing.csv"), rowsOfScores(scores)),
		writeCSV(filepath.Join(dir, "packing-small.csv"), rowsOfScores(smaller)),
		writeCSV(filepath.Join(dir, "packing-large.csv"), rowsOfTimes(times)),
		draw(means, filepath.Join(dir, "packing.svg")),
	)
}
