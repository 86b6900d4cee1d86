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
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	text := markdownOfCosts(costs)
	if _, err := io.WriteString(stdout, text); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "tables.md"), []byte(text), 0o600), draw(costs, filepath.Join(dir, "scripts.svg")))
}
