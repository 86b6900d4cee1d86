package monitor_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/test/cases"
)

// The cases in testdata are what a monitor makes of readings. The head of testdata/readings.txt has their words.
func TestCases(t *testing.T) {
	cases.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			m, told := newMonitor(), strings.Builder{}
			for line := range strings.Lines(d.Input) {
				if err := tell(&told, m, strings.Fields(line)); err != nil {
					d.Fatalf(t, "%s: %v", line, err)
				}
			}
			return told.String()
		}
	})
}

// tell takes in a line of a case, and writes down what comes of it.
func tell(told *strings.Builder, m *monitor.Monitor, words []string) (err error) {
	switch words[0] {
	case "loads":
		n, err := strconv.Atoi(words[1])
		l := m.Loads(n)
		for p, speed := range l.Speeds {
			if l.Missing.Contains(p) {
				fmt.Fprint(told, "? ")
			} else {
				fmt.Fprintf(told, "%.4g ", speed)
			}
		}
		if !l.At.IsZero() {
			fmt.Fprintf(told, "at %s", l.At.Sub(start))
		}
		if !l.Silent.Empty() {
			fmt.Fprintf(told, ", nothing more of %s", l.Silent)
		}
		if len(l.Beyond) > 0 {
			fmt.Fprintf(told, ", beyond: %v", l.Beyond)
		}
		fmt.Fprintln(told)
		return err
	case "window":
		m.Window, err = time.ParseDuration(words[1])
	case "smooth":
		m.Smooth, err = time.ParseDuration(words[1])
	case "catch-up":
		m.CatchUp, err = time.ParseDuration(words[1])
	default:
		r, err := reading(words)
		if err != nil {
			return err
		}
		if err := m.Add(r); err != nil {
			fmt.Fprintf(told, "%s: %v\n", words[0], err)
		}
	}
	return err
}

func reading(words []string) (monitor.Reading, error) {
	at, err := time.ParseDuration(words[0])
	r := monitor.Reading{At: start.Add(at), Totals: words[1] == "totals", Values: map[int]float64{}, Backlogs: map[int]float64{}, Origins: map[int]string{}}
	for _, word := range words[2:] {
		word, origin, named := strings.Cut(word, "@")
		word, backlog, waits := strings.Cut(word, "/")
		number, value, _ := strings.Cut(word, "=")
		p, e := strconv.Atoi(number)
		if err == nil {
			err = e
		}
		if r.Values[p], e = strconv.ParseFloat(value, 64); err == nil {
			err = e
		}
		if named {
			r.Origins[p] = origin
		}
		if waits {
			if r.Backlogs[p], e = strconv.ParseFloat(backlog, 64); err == nil {
				err = e
			}
		}
	}
	return r, err
}
