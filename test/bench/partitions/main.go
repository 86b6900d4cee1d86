// Partitions compares strategies that divide partitions among members: those of pkg/placement, hashing of three kinds by published
// libraries, and the balancers of a Kafka client. All play the same scripts of members that come and go:
//
//	go -C test/bench/partitions run . -out DIRECTORY
//
// The directory gets tables.md, what each script cost with each strategy, and scripts.svg. What it measures are the measures of
// test/measure, and time.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/test/bench/table"
)

func main() {
	out := flag.String("out", "bin/bench", "the directory that gets tables and picture")
	flag.Parse()
	if err := run(*out, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "partitions:", err)
		os.Exit(1)
	}
}

func run(dir string, stdout io.Writer) error {
	costs := slices.Concat(play(size{256, 16}), play(size{4096, 300}))
	return errors.Join(
		table.Write(stdout, filepath.Join(dir, "tables.md"), table.Markdown(linesOf(costs))),
		draw(costs, filepath.Join(dir, "scripts.svg")),
	)
}

func linesOf(costs []cost) [][]string {
	lines := make([][]string, 1, 1+len(costs))
	lines[0] = []string{"size", "script", "strategy", "balance degree", "stickiness", "moves", "of the ideal", "a step takes", "largest map"}
	for _, c := range costs {
		lines = append(lines, []string{
			fmt.Sprintf("%d × %d", c.partitions, c.members), c.script, c.contender, table.Decimals(c.balance, 2), table.Decimals(c.stickiness, 3),
			strconv.Itoa(c.moves), table.Decimals(c.overIdeal(), 2), c.took.Round(100 * time.Nanosecond).String(), fmt.Sprintf("%d B", c.bytes),
		})
	}
	return lines
}

// overIdeal returns how many times the ideal moved.
func (c cost) overIdeal() float64 { return float64(c.moves) / float64(c.ideal) }
