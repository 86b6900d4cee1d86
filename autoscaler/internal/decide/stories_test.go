package decide_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/cases"
)

// The stories in testdata are what the autoscaler does with a workload in virtual time. The head of testdata/moves.txt has their words.
func TestStories(t *testing.T) {
	cases.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			var partitions, pods int
			d.ScanArgs(t, "partitions", &partitions)
			d.ScanArgs(t, "pods", &pods)
			s := &story{loads: make([]float64, partitions)}
			s.world = newWorld(t, partitions, pods, func(p int, _ time.Duration) float64 { return s.loads[p] })
			for line := range strings.Lines(d.Input) {
				if err := s.read(strings.TrimSpace(line)); err != nil {
					d.Fatalf(t, "%s: %v", strings.TrimSpace(line), err)
				}
			}
			return s.told.String()
		}
	})
}

// story is a world to which something happens.
type story struct {
	*world

	loads []float64 // of the partitions
	told  strings.Builder
}

// read takes in a line of a story.
func (s *story) read(line string) error {
	times, steps, repeated := strings.Cut(line, " times: ")
	if !repeated {
		return s.take(line, true)
	}
	n, err := strconv.Atoi(times)
	for range n {
		for step := range strings.SplitSeq(steps, ", ") {
			if err == nil {
				err = s.take(step, false)
			}
		}
	}
	s.tell(s.now)
	return err
}

// take takes one step, and tells what came of it if it takes time.
func (s *story) take(step string, tells bool) (err error) {
	words := append(strings.Fields(step), "", "", "")
	rest := words[1 : len(words)-3]
	begin := s.now
	switch words[0] {
	case "run":
		var d time.Duration
		d, err = time.ParseDuration(words[1])
		s.run(d)
	case "until":
		err = s.await(words[1])
	case "asleep", "cut-off": // no process looks, or no process can read the owner
		var d time.Duration
		d, err = time.ParseDuration(words[1])
		if s.now = s.now.Add(d); words[0] == "cut-off" {
			s.decider.Missed()
		}
		return err
	case "load":
		return s.readLoad(rest)
	case "dead":
		s.dead, err = ids(rest)
		return err
	case "lost":
		s.lost, err = ids(rest)
		maps.DeleteFunc(s.row, func(id int, _ placement.Set) bool { return s.lost[id] })
		return err
	case "stuck":
		s.stuck, err = ids(rest)
		return err
	case "scale":
		s.scaler = words[2]
		s.count, err = strconv.Atoi(words[1])
		maps.DeleteFunc(s.row, func(id int, _ placement.Set) bool { return id >= s.count })
		return err
	default:
		return s.set(words[0], words[1])
	}
	if tells {
		s.tell(begin)
	}
	return err
}

// set changes what stays so.
func (s *story) set(what, value string) (err error) {
	switch what {
	case "swap": // a person gives what ids 0 and 1 have to the other one each
		s.target, s.foreign = maps.Clone(s.row), ""
		s.target[0], s.target[1] = s.row[1], s.row[0]
	case "restart":
		s.decider = &decide.Decider{Settings: s.decider.Settings}
	case "room":
		s.full, err = strconv.Atoi(value)
	case "hpa":
		s.tick = 5 * time.Second
		s.hpa, err = strconv.Atoi(value)
	case "max":
		s.decider.Settings.Max, err = strconv.Atoi(value)
	case "min":
		s.decider.Settings.Min, err = strconv.Atoi(value)
	case "fragile":
		s.fragile = true
	case "frozen":
		s.frozen = true
	case "dark":
		s.dark = true
	case "light":
		s.dark = false
	case "ahead": // the time of the last scaling is yet to come, because clocks differ
		s.scaled = s.now.Add(hour)
	default:
		err = fmt.Errorf("unknown word %q", what)
	}
	return err
}

// readLoad reads a speed, and which partitions have it: all, these, or those that an id owns now.
func (s *story) readLoad(words []string) (err error) {
	all := placement.Between(0, s.partitions-1)
	switch len(words) {
	case 3:
		all, err = placement.Parse(words[2], s.partitions)
	case 4:
		var id int
		id, err = strconv.Atoi(words[3])
		all = s.row[id]
	}
	if err != nil {
		return err
	}
	for p := range all.All() {
		if s.loads[p], err = strconv.ParseFloat(words[0], 64); err != nil {
			return err
		}
	}
	return nil
}

func ids(words []string) (map[int]bool, error) {
	all := map[int]bool{}
	for _, word := range words {
		id, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		all[id] = true
	}
	return all, nil
}

// await runs until something is done, which comes within an hour: the number of pods changes, or anything at all.
func (s *story) await(what string) error {
	pods, number := strings.CutPrefix(what, "pods=")
	for begin, n := s.now, s.scalings(); s.now.Sub(begin) < hour; {
		if s.step(); !number && s.scalings() > n || what == "action" && s.last().Action != decide.Nothing || number && strconv.Itoa(s.count) == pods {
			return nil
		}
	}
	return fmt.Errorf("nothing is done: %s", s.last().Why)
}

// tell writes down how the world stands.
func (s *story) tell(begin time.Time) {
	loads := make([]string, 0, len(s.row))
	for _, id := range s.row.IDs() {
		loads = append(loads, strconv.FormatFloat(s.sum(id), 'f', 0, 64))
	}
	d := s.last()
	fmt.Fprintf(&s.told, "%s: %d pods, loads %s; %d up, %d down, %d targets; overloaded for %s\n", after(s.now.Sub(begin), s.now.Sub(s.start)), s.count, strings.Join(loads, " "), s.ups, s.downs, s.targets, s.overloaded)
	fmt.Fprintf(&s.told, "  %s%s%s: %s\n", map[bool]string{true: "warns, "}[d.Warn], map[bool]string{true: "stuck, "}[d.Stuck], d.Phase, d.Why)
}

func after(since, in time.Duration) string {
	if since == 0 || since == in {
		return in.String()
	}
	return fmt.Sprintf("+%s = %s", since, in)
}
