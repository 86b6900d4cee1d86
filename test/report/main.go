// Report makes one self-contained HTML page of a run with faults: who held which id when, what was
// broken when, and what was counted. "make report" starts it; package history says what a run is.
//
//	go -C test/report run . -run DIR -out FILE
//
// Names that do not begin with / are below this folder then, so give whole ones.
// The page needs nothing but a browser. Every id is a row, every bar a pod that showed the id, every
// line or area a fault; what two pods showed at once is red.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/idalloc/idalloc/test/history"
)

func main() {
	dir := flag.String("run", "", "the directory of the run, as package history describes it")
	out := flag.String("out", "report.html", "the page to write")
	flag.Parse()
	if err := report(*dir, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func report(dir, out string) error {
	run, err := history.Read(dir)
	if err != nil {
		return fmt.Errorf("report: -run must name the directory of a run, such as make chaos writes: %w", err)
	}
	p, err := newPage(run)
	if err != nil {
		return fmt.Errorf("report: %s: %w", dir, err)
	}
	var html bytes.Buffer
	if err := p.write(&html); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.WriteFile(out, html.Bytes(), 0o644); err != nil { //nolint:gosec // a page to be read by anybody
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
