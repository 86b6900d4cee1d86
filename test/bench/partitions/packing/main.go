// Packing compares autoscaler/packing with published algorithms by the protocol of "Kafka Consumer Group Autoscaler" (arXiv 2206.11170): 200
// partitions whose speeds walk at random between 0 and all that a pod can do, packed again after each of 500 measurements:
//
//	go -C test/bench/partitions run ./packing -out DIRECTORY
//
// The directory gets packing.md, what each algorithm needed and moved by size of the steps, and packing.svg, the same as a Pareto front.
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
	paper := protocol{partitions: 200, measurements: 500, seeds: *seeds}
	if err := run(*out, paper, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "packing:", err)
		os.Exit(1)
	}
}

func run(dir string, paper protocol, stdout io.Writer) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	means := meansOf(paper.playAll())
	text := markdownOfScores(means)
	if _, err := io.WriteString(stdout, text); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "packing.md"), []byte(text), 0o600), draw(means, filepath.Join(dir, "packing.svg")))
}
