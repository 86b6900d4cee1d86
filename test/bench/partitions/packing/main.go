// Packing compares the algorithms of pkg/partition/packing by the protocol of "Kafka Consumer Group Autoscaler" (arXiv 2206.11170): 200
// partitions whose speeds walk at random, packed anew after each of 500 measurements:
//
//	go -C test/bench/partitions run ./packing -out DIRECTORY
//
// The directory gets packing.csv, what each algorithm needed and moved by size of the steps and seed; packing.svg, the means as a Pareto
// front; packing-large.csv, how long it took to pack 10,000 partitions; and packing.md, both as tables.
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
	if err := run(*out, protocol{partitions: 200, measurements: 500, seeds: *seeds}, 10_000, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "packing:", err)
		os.Exit(1)
	}
}

func run(dir string, p protocol, large int, stdout io.Writer) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	var scores []score
	for _, step := range steps() {
		scores = append(scores, p.play(step, contenders())...)
	}
	times := race(large)
	means := meansOf(scores)
	text := markdownOfScores(means) + "\n" + markdownOfTimes(times)
	if _, err := io.WriteString(stdout, text); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "packing.md"), []byte(text), 0o600),
		writeCSV(filepath.Join(dir, "packing.csv"), rowsOfScores(scores)),
		writeCSV(filepath.Join(dir, "packing-large.csv"), rowsOfTimes(times)),
		draw(means, filepath.Join(dir, "packing.svg")),
	)
}
