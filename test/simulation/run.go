package simulation

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/profile"
)

// Result is what came of one history.
type Result struct {
	Seed  uint64 `json:"seed"`
	Steps int    `json:"steps"`
	Lines int    `json:"lines"`
	// Sum is that of every line of the history.
	Sum     uint64        `json:"sum"`
	Virtual time.Duration `json:"virtual"`
	// Healed is when the faults ended.
	Healed     time.Duration  `json:"healed"`
	Violations []string       `json:"violations"`
	Faults     map[string]int `json:"faults"`
	List       []Fault        `json:"list"`
	About      string         `json:"about"`
	// Kept are the indexes of the faults that are enough, after shrinking.
	Kept []string `json:"kept,omitempty"`
	// Names are the kinds or families of faults that it was drawn from, empty for all.
	Names []string `json:"names,omitempty"`
}

const (
	// patience is how long after the last fault a workload may need until every slot is held: a refused hand-over is
	// tried again after up to ten minutes, and an image's back-off may take minutes, too.
	patience = 30 * time.Minute
	// resting is how long it is watched after that.
	resting = 3 * time.Minute
)

// Play runs one history in a bubble of testing/synctest. names selects kinds or families of
// faults; keep, if it is not nil, leaves out those of the drawn faults for which it is false. The history goes to
// trace and what a page of it needs to chronicle, if they are not nil.
func Play(seed uint64, names []string, keep func(i int) bool, trace io.Writer, chronicle *Chronicle) Result {
	d := dice.Derive(seed, "world")
	time.Sleep(d.Span(0, time.Hour)) //nolint:forbidigo // in a bubble: it makes Go's own randomness, too, a function of the seed
	p := profile.Draw(d)
	w := newWorld(seed, p)
	w.trace, w.chronicle = trace, chronicle
	var faults []Fault
	for i, f := range drawFaults(seed, p, names) {
		if keep == nil || keep(i) {
			faults = append(faults, f)
		}
	}
	w.Alone(func() {
		w.note("profile", fmt.Sprintf("%+v", p))
		w.makeNodes()
		w.createOwner(p.Count, 1)
		w.collect()
		others, _, _ := drawKinds(seed, p, names)
		w.schedule(faults, others)
	})
	w.sleep(p.Chaos + p.After)
	w.Alone(w.heal)
	w.settle("before anybody repaired anything", w.judge.served)
	w.Alone(w.repair)
	if w.settle("after the last fault", w.judge.settled) {
		w.rest()
	}
	w.shutDown()
	w.Alone(w.judge.recorder.judge)
	result := Result{
		Seed: seed, Steps: w.steps, Lines: w.lines, Virtual: w.Now(), Faults: w.faults, List: faults,
		Sum: w.sum.Sum64(), Names: names, Healed: p.Chaos + p.After, About: fmt.Sprintf("%+v", p),
	}
	for _, v := range w.judge.violations {
		result.Violations = append(result.Violations, v.String())
	}
	return result
}

// waitForEnd blocks until the process has ended. One that does not has left a goroutine behind.
func (p *process) waitForEnd() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		panic("simulation: a goroutine was left behind: " + p.id + " does not end")
	}
}

// Fits reports whether the seed's history is of the kind that the words ask for: strict, default, or a resource.
func Fits(seed uint64, words []string) bool {
	d := dice.Derive(seed, "world")
	d.Next() // the beginning
	return profile.Draw(d).Fits(words)
}

// sleep lets the world run, and looks at it on the way.
func (w *world) sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // time is virtual
	w.Alone(w.judge.look)
}

// settle waits until nothing is missing.
func (w *world) settle(when string, whatIsMissing func() string) bool {
	missing := ""
	for until := w.Now() + patience; w.Now() < until; {
		w.Alone(func() { missing = whatIsMissing() })
		if missing == "" {
			return true
		}
		w.sleep(time.Second)
	}
	w.Alone(func() { w.judge.reportf(density, "%s %s: %s", patience, when, missing) })
	return false
}

// rest watches a settled workload, that must ask little and must not move.
func (w *world) rest() {
	w.sleep(time.Minute)
	for late := true; late; {
		w.Alone(func() { late = w.newsUnderWay() })
		w.sleep(time.Second)
	}
	var before map[*process]int
	w.Alone(func() {
		before = w.judge.calls()
		w.judge.rest()
	})
	w.sleep(resting)
	w.Alone(func() {
		w.judge.checkCalls(before, resting)
		if missing := w.judge.settled(); missing != "" {
			w.judge.reportf(density, "%s after it had settled: %s", resting, missing)
		}
		w.judge.look()
		w.judge.still = nil
	})
}

// shutDown ends all processes; each of their goroutines must end, too, or the bubble never does.
func (w *world) shutDown() {
	var all []*process
	w.Alone(func() {
		w.judge.checkBusy()
		w.scale(w.owner(), 0)
		all = w.running()
		for i, p := range all {
			if i%2 == 0 {
				p.terminate()
			}
		}
	})
	time.Sleep(time.Minute) //nolint:forbidigo // time is virtual
	w.Alone(func() {
		w.note("end", strconv.Itoa(w.steps))
		for _, p := range w.running() {
			all = append(all, p)
			p.kill()
		}
		for _, k := range w.pods {
			k.gone = true
		}
	})
	for _, p := range all {
		if p.launched {
			p.waitForEnd()
		}
	}
	w.Alone(func() { w.over = true })
	time.Sleep(15 * time.Minute) //nolint:forbidigo // time is virtual
	w.Alone(func() {
		if w.leaked != "" {
			panic("simulation: a goroutine was left behind: " + w.leaked) // the bubble would never end
		}
	})
}
