// Packing compares autoscaler/packing with published algorithms by the protocol of "Kafka Consumer Group Autoscaler" (arXiv 2206.11170): 200
// partitions whose speeds walk at random between 0 and all that a pod can do, packed again after each of 500 measurements:
//
//	go -C test/bench/partitions run ./packing -out DIRECTORY
//
// The directory gets packing.md, what each algorithm needed and moved by size of the steps.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/idalloc/idalloc/test/bench/table"
)

func main() {
	out := flag.String("out", "bin/bench", "the directory that gets the table")
	seeds := flag.Int("seeds", 10, "how many walks to play for each size of the steps")
	flag.Parse()
	paper := protocol{partitions: 200, measurements: 500, seeds: *seeds}
	if err := run(*out, paper, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "packing:", err)
		os.Exit(1)
	}
}

func run(dir string, paper protocol, stdout io.Writer) error {
	return table.Write(stdout, filepath.Join(dir, "packing.md"), table.Markdown(linesOf(paper.playAll())))
}

func linesOf(scores []score) [][]string {
	lines := make([][]string, 1, 1+len(scores))
	lines[0] = []string{"step", "algorithm", "pods", "over the bound", "over the fewest", "R"}
	for _, s := range scores {
		lines = append(lines, []string{
			fmt.Sprintf("%d %%", s.step), s.name, table.Decimals(s.pods, 1), table.Decimals(s.overBound, 3), table.Decimals(s.overFewest, 3), table.Decimals(s.moved, 1),
		})
	}
	return lines
}
