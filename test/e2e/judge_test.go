package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// judge looks at a program's replicas again and again. It adds up, for each object, for how long no replica worked on it, and for how long more than one did.
type judge struct {
	objects []string
	last    time.Time
	workers map[string]int
	times   map[string]*times
	// uneven is when some object last had no worker, or two.
	uneven time.Time
}

// times are those of one object.
type times struct{ none, two time.Duration }

// begin forgets what was, and keeps what the last look showed.
func (j *judge) begin() {
	j.times = map[string]*times{}
	for _, object := range j.objects {
		j.times[object] = &times{}
	}
	j.uneven = j.last
}

// look notes how many replicas work on each object now. What the last look showed lasted until now.
func (j *judge) look(now time.Time, workers map[string]int) {
	passed := now.Sub(j.last)
	for _, object := range j.objects {
		switch n := j.workers[object]; {
		case j.times == nil: // nothing has begun
		case n == 0:
			j.times[object].none += passed
		case n > 1:
			j.times[object].two += passed
		}
		if workers[object] != 1 {
			j.uneven = now
		}
	}
	j.last, j.workers = now, workers
}

// even returns for how long each object has had one worker.
func (j *judge) even() time.Duration { return j.last.Sub(j.uneven) }

// String says how many objects had no worker, or two, and how many seconds each of them did: none/two.
func (j *judge) String() string {
	var none, two []time.Duration
	var each strings.Builder
	for _, object := range j.objects {
		t := j.times[object]
		if t.none > 0 {
			none = append(none, t.none)
		}
		if t.two > 0 {
			two = append(two, t.two)
		}
		if t.none+t.two > 0 {
			fmt.Fprintf(&each, " %s %.1f/%.1f", object, t.none.Seconds(), t.two.Seconds())
		}
	}
	return fmt.Sprintf("no worker: %s; two: %s;%s", longest(none), longest(two), &each)
}

func longest(of []time.Duration) string {
	if len(of) == 0 {
		return "never"
	}
	slices.Sort(of)
	return fmt.Sprintf("%d objects, median %.1f s, longest %.1f s", len(of), of[len(of)/2].Seconds(), of[len(of)-1].Seconds())
}

func TestJudge(t *testing.T) {
	start := time.Unix(0, 0)
	j := &judge{objects: []string{"a", "b", "c"}}
	j.look(start, map[string]int{"a": 1, "b": 1, "c": 1})
	j.begin()
	j.look(start.Add(time.Second), map[string]int{"a": 1, "b": 2})
	j.look(start.Add(3*time.Second), map[string]int{"a": 1, "b": 1})
	j.look(start.Add(4*time.Second), map[string]int{"a": 1, "b": 1, "c": 1, "d": 2})
	j.look(start.Add(6*time.Second), map[string]int{"a": 1, "b": 1, "c": 1})
	if a, b, c := *j.times["a"], *j.times["b"], *j.times["c"]; a != (times{}) || b != (times{two: 2 * time.Second}) || c != (times{none: 3 * time.Second}) {
		t.Errorf("a %v, b %v, c %v", a, b, c)
	}
	if got := j.even(); got != 3*time.Second { // the look after three seconds was the last uneven one
		t.Errorf("even for %s", got)
	}
	if got, want := j.String(), "no worker: 1 objects, median 3.0 s, longest 3.0 s; two: 1 objects, median 2.0 s, longest 2.0 s; b 0.0/2.0 c 3.0/0.0"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if j.begin(); j.String() != "no worker: never; two: never;" {
		t.Errorf("after a new beginning: %s", j)
	}
}
