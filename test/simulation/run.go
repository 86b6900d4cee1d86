package simulation

import (
	"fmt"
	"io"
	"time"

	"github.com/idalloc/idalloc/test/simulation/checks"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/faults"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// Result is what came of one history.
type Result struct {
	Seed  uint64 `json:"seed"`
	Steps int    `json:"steps"`
	Lines int    `json:"lines"`
	// Sum is that of every line of the history.
	Sum        uint64        `json:"sum"`
	Virtual    time.Duration `json:"virtual"`
	Violations []string      `json:"violations"`
	// Conform is how many steps of test/proof the history has.
	Conform int            `json:"conform"`
	Faults  map[string]int `json:"faults"`
	List    []faults.Fault `json:"list"`
	About   string         `json:"about"`
	// Kept are the indexes of the faults that are enough, after shrinking.
	Kept []string `json:"kept,omitempty"`
	// Names are the kinds or families of faults that it was drawn from, empty for all.
	Names []string `json:"names,omitempty"`
	// Command is how the tests that played it are run.
	Command string `json:"command"`
}

const (
	// patience is how long after the last fault a workload may need until every slot is held: a refused hand-over is
	// tried again after up to ten minutes, and an image's back-off may take minutes, too.
	patience = 30 * time.Minute
	// resting is how long it is watched after that.
	resting = 3 * time.Minute
)

// Controlled runs one history in a bubble of testing/synctest, with controllers if the suite has them. names selects kinds or families of
// faults; keep, if it is not nil, leaves out those of the drawn faults for which it is false. The history goes to
// trace, if it is not nil.
func (s *Suite) Controlled(seed uint64, names []string, keep func(i int) bool, trace io.Writer) Result {
	d := dice.Derive(seed, "world")
	time.Sleep(d.Span(0, time.Hour)) //nolint:forbidigo // in a bubble: it makes Go's own randomness, too, a function of the seed
	p := s.draw(d)
	h := newPlaying(seed, p, trace)
	h.world.Controller, h.world.Policies = s.Controller, s.Policies
	var list []faults.Fault
	for i, f := range faults.Draw(seed, p, names) {
		if keep == nil || keep(i) {
			list = append(list, f)
		}
	}
	w, faulty := h.world, time.Duration(p.Chapters)*p.Chaos
	about := fmt.Sprintf("%+v", p)
	w.Alone(func() {
		w.Note("profile", about)
		w.MakeNodes()
		w.StartControllers()
		w.CreateOwner(p.Count, 1)
		w.Collect()
		h.judge.Watch()
		faults.Schedule(w, list, names)
	})
	h.sleep(faulty + p.After)
	w.Alone(w.Heal)
	h.settle("before anybody repaired anything", h.judge.Served)
	w.Alone(func() { faults.Repair(w) })
	if h.settle("after the last fault", h.judge.Settled) && h.rest() && h.forged() && h.brief() && h.scale() {
		h.shrink()
	}
	w.Alone(h.judge.End)
	w.ShutDown()
	result := Result{
		Seed: seed, Steps: w.Steps, Lines: w.Lines, Virtual: w.Now(), Faults: w.Faults, List: list,
		Sum: w.Sum(), Command: s.Command, Names: names, About: about, Conform: h.proof.Steps(),
	}
	if s.proof {
		for _, v := range h.proof.Only() {
			result.Violations = append(result.Violations, v.String())
		}
		return result
	}
	for _, v := range h.judge.Violations() {
		result.Violations = append(result.Violations, v.String())
	}
	for _, v := range w.Forbidden {
		result.Violations = append(result.Violations, "a shipped policy refuses idalloc's own write: "+v)
	}
	return result
}

// playing is one history under way, and its judge.
type playing struct {
	world *world.World
	judge *checks.Judge
	proof *checks.Conformance
}

func newPlaying(seed uint64, p profile.Profile, trace io.Writer) playing {
	w := world.New(seed, p)
	w.Trace = trace
	judge := checks.New(w)
	return playing{world: w, judge: judge, proof: checks.NewConformance(judge)}
}

// draw draws what a history is about.
func (s *Suite) draw(d *dice.Dice) profile.Profile {
	if s.Controller != nil {
		return profile.DrawControlled(d)
	}
	return profile.Draw(d)
}

// fits reports whether the seed's history is of the kind that the words ask for: strict, default, or a resource.
func (s *Suite) fits(seed uint64, words []string) bool {
	d := dice.Derive(seed, "world")
	d.Next() // the beginning
	return s.draw(d).Fits(words)
}

// sleep lets the world run, and has the judge look at it on the way.
func (h playing) sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // time is virtual
	h.world.Alone(h.judge.Look)
}

// settle waits until nothing is missing.
func (h playing) settle(when string, whatIsMissing func() string) bool {
	missing := ""
	limit := patience + h.world.Profile.Skew // a clock that is behind takes a pod for lost that much later
	for until := h.world.Now() + limit; h.world.Now() < until; {
		h.world.Alone(func() { missing = whatIsMissing() })
		if missing == "" {
			return true
		}
		h.sleep(time.Second)
	}
	h.world.Alone(func() { h.judge.Missf("%s %s: %s", limit, when, missing) })
	return false
}

// scale changes the count of a settled workload by one, and looks at which partitions move.
func (h playing) scale() bool {
	w, scaled := h.world, false
	w.Alone(func() {
		if scaled = h.judge.Scale(); !scaled {
			return
		}
		by := 1
		if owner := w.Owner(); owner.Count() > 1 && w.Dice("scale").Chance(0.5) {
			by = -1
		}
		w.Scale(w.Owner(), w.Owner().Count()+by)
	})
	if !scaled {
		return true
	}
	settled := h.settle("after the count changed", h.judge.Settled)
	if settled {
		w.Alone(h.judge.Scaled)
	}
	return settled
}

// forged has another client forge what idalloc proposes, in a settled workload: no work stops for it, and it is repaired.
func (h playing) forged() bool {
	d := h.world.Dice("forged")
	if !d.Chance(0.5) {
		return true
	}
	h.world.Alone(func() {
		h.judge.Rest()
		faults.ForgeQuietly(h.world, d)
	})
	h.sleep(resting)
	h.world.Alone(h.judge.RestEnds)
	for range d.Between(0, 2) {
		h.world.Alone(func() { faults.Forge(h.world, d) })
		h.sleep(d.Tail(5 * time.Second))
	}
	return h.settle("after a client forged rows and requests", h.judge.Settled)
}

// brief has the API server be away for less than strict mode promises to survive: no pod loses its id.
func (h playing) brief() bool {
	w := h.world
	d := w.Dice("brief")
	long := w.Profile.Survives()
	if long <= 0 || !w.Profile.Strict() || !d.Chance(0.7) {
		return true
	}
	h.sleep(d.Span(0, time.Minute))
	w.Alone(h.judge.Rest)
	for range d.Between(1, 3) {
		w.Alone(func() { faults.Outage(w, d.Span(long/2, long), d) })
		h.sleep(long + 2*w.Profile.FenceAfter + 15*time.Second)
	}
	w.Alone(h.judge.RestEnds)
	return h.settle("after a brief outage", h.judge.Settled)
}

// shrink takes pods away from a settled workload, and waits until nothing of them can be left.
func (h playing) shrink() {
	w := h.world
	d := w.Dice("shrink")
	if !d.Chance(0.4) {
		return
	}
	w.Alone(func() { w.Scale(w.Owner(), w.Owner().Count()+d.Between(1, 2)) })
	if !h.settle("after the count grew", h.judge.Settled) {
		return
	}
	w.Alone(func() { w.Scale(w.Owner(), d.Between(1, max(1, w.Owner().Count()-2))) })
	if h.settle("after the count shrank", h.judge.Settled) {
		h.sleep(2*time.Minute + 2*w.Profile.FenceAfter)
	}
}

// rest watches a settled workload, that must ask little and must not move. It returns false if it was not settled for long: the repair looks
// once more after a minute.
func (h playing) rest() bool {
	h.sleep(time.Minute + time.Second)
	for late := true; late; {
		h.world.Alone(func() { late = h.world.NewsUnderWay() })
		h.sleep(time.Second)
	}
	if !h.settle("after the repair", h.judge.Settled) {
		return false
	}
	h.world.Alone(h.judge.Rest)
	h.sleep(resting)
	h.world.Alone(func() { h.judge.Rested(resting) })
	return true
}
