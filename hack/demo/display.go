package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	tick = "✓"
	gone = "pod gone" // the state of a slot whose pod does not exist any more
)

// display shows the demo: what is said, and a line for each row that changed.
type display struct {
	out     io.Writer
	clock   time.Time      // lines count their time from here
	printed map[string]row // the last line of each pod
}

func (d *display) say(lines ...string) {
	_, _ = io.WriteString(d.out, strings.Join(lines, "\n")+"\n")
}

// draw shows what is different from what was shown last.
func (d *display) draw(f frame) {
	add := func(r row) {
		line := fmt.Sprintf("  %5.1fs  id %-2s %-24s %-12s %-12s %s", time.Since(d.clock).Seconds(), r.id, r.pod, r.state, r.says, r.note)
		d.say(strings.TrimRight(line, " "))
	}
	for _, r := range f.rows {
		last := d.printed[r.pod]
		if f.pods[r.pod] == nil || r.id == last.id && r.state == last.state && r.says == last.says {
			continue
		}
		d.printed[r.pod] = r
		add(r)
	}
	for _, pod := range slices.Sorted(maps.Keys(d.printed)) {
		if f.pods[pod] == nil {
			add(row{id: d.printed[pod].id, pod: pod, state: gone})
			delete(d.printed, pod)
		}
	}
}
