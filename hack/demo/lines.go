package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// lines is the display for pipes and logs: it prints what changed.
type lines struct {
	out   io.Writer
	begun time.Time

	mu   sync.Mutex
	last map[string]string // what was printed, by pod
	dead map[string]bool   // pods of which it was printed that they are gone
	err  error
}

func (l *lines) print(text ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(text...)
}

// write writes whole lines at once. The caller has the lock.
func (l *lines) write(text ...string) {
	if len(text) == 0 {
		return
	}
	_, err := io.WriteString(l.out, strings.Join(text, "\n")+"\n")
	l.err = errors.Join(l.err, err)
}

func (l *lines) say(text ...string) { l.print(text...) }

func (l *lines) progress(what string) {
	if what != "" {
		l.print("  " + what)
	}
}

func (l *lines) begin(s scene) {
	l.print(fmt.Sprintf("%d/%d %s", s.number, s.of, s.title), "  $ "+s.command, "  "+s.look)
}

func (l *lines) clock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = time.Now()
}

func (l *lines) fold() {}

func (l *lines) end(result string) { l.print("  "+tick+" "+result, "") }

// draw prints the rows that changed.
func (l *lines) draw(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, dead := map[string]string{}, map[string]bool{}
	var text []string
	for _, r := range f.rows {
		if r.mood == empty {
			continue
		}
		dead[r.pod] = r.state == gone
		now[r.pod] = strings.TrimRight(fmt.Sprintf("id %-2s %-24s %-12s %-12s %s", r.id, r.pod, r.state, r.says, r.note), " ")
		if l.last[r.pod] != now[r.pod] {
			text = append(text, l.stamp()+now[r.pod])
		}
	}
	for pod, was := range l.last {
		_, there := now[pod]
		switch {
		case there || l.dead[pod]:
		case f.exist[pod]:
			now[pod] = was // between two rows: the Deployment was read before the pod took its slot
		default:
			text = append(text, l.stamp()+fmt.Sprintf("      %-24s %s", pod, gone))
		}
	}
	l.last, l.dead = now, dead
	l.write(text...)
}

func (l *lines) stamp() string { return fmt.Sprintf("  %5.1fs  ", time.Since(l.begun).Seconds()) }

// pause does not: nobody watches.
func (l *lines) pause(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

func (l *lines) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
