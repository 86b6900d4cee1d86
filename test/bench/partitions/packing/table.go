package main

import (
	"fmt"
	"strings"
)

func markdownOfScores(means []score) string {
	var b strings.Builder
	b.WriteString("| step | algorithm | pods | over the bound | over the fewest | R |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- |\n")
	for _, m := range means {
		_, _ = fmt.Fprintf(&b, "| %d %% | %s | %.1f | %.3f | %.3f | %.1f |\n",
			m.step, m.name, m.pods, m.overBound, m.overFewest, m.moved)
	}
	return b.String()
}
