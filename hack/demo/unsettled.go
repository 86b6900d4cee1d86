package main

import (
	"fmt"
	"os"
	"strings"
)

// unsettled adds to the error of a phase what the pods that are not fine wrote last.
func (s *stage) unsettled(err error, f frame) error {
	var b strings.Builder
	for _, r := range f.rows {
		if r.mood == fine || r.mood == empty {
			continue
		}
		fmt.Fprintf(&b, "\n%s (id %s) is %s", r.pod, r.id, r.state)
		for _, container := range []string{"idalloc-init", "idalloc"} {
			if line := lastLine(s.env.Node.Logs(s.ns.Name, r.pod, container)); line != "" {
				fmt.Fprintf(&b, "\n  %s: %s", container, line)
			}
		}
	}
	return fmt.Errorf("%w: %d of %d pods hold an id%s", err, len(f.holders), f.count, b.String())
}

func lastLine(path string) string {
	log, err := os.ReadFile(path) //nolint:gosec // a log of the demo's own pods
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return lines[len(lines)-1]
}
