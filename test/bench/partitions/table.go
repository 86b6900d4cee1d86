package main

import (
	"fmt"
	"strings"
	"time"
)

func (s size) String() string { return fmt.Sprintf("%d × %d", s.partitions, s.members) }

// markdownOfCosts returns a table for each size.
func markdownOfCosts(costs []cost) string {
	var b strings.Builder
	for i, c := range costs {
		if i == 0 || c.size != costs[i-1].size {
			if i > 0 {
				b.WriteByte('\n')
			}
			_, _ = fmt.Fprintf(&b, "%d partitions, %d members:\n\n", c.partitions, c.members)
			b.WriteString("| script | strategy | balance degree | stickiness | moves | of the ideal | a step takes | largest map |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
		}
		_, _ = fmt.Fprintf(&b, "| %s | %s | %.2f | %.3f | %d | %.2f | %s | %d B |\n",
			c.script, c.contender, c.balance, c.stickiness, c.moves, c.overIdeal(), short(c.took), c.bytes)
	}
	return b.String()
}

// overIdeal returns how many times the ideal moved.
func (c cost) overIdeal() float64 { return float64(c.moves) / float64(c.ideal) }

// short returns a time with about three digits.
func short(d time.Duration) string {
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}
