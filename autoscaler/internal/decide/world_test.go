package decide_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/pkg/placement"
)

const (
	tick   = 10 * time.Second
	minute = time.Minute
	hour   = time.Hour
)

func settings() decide.Settings {
	return decide.Settings{
		Capacity: 100, Min: 1, Every: 30 * time.Second, AfterUp: 3 * minute, AfterDown: 5 * minute, MaxAge: minute, Patience: 2 * minute, Spare: 0.1,
	}
}

// world is a workload in virtual time. Pods come and go a while after the number was changed, and partitions move a while after the target was.
type world struct {
	t       *testing.T
	decider *decide.Decider
	tick    time.Duration // how often the decider decides
	now     time.Time
	random  *rand.Rand

	partitions, count int
	row, target       placement.Owners
	due               map[int]time.Time // when ids become members
	settles           time.Time         // when partitions are where they should be
	// load returns the speed of a partition after this time.
	load func(p int, after time.Duration) float64
	// measured is when the loads were measured last. They are measured at each tick unless dark says no.
	measured time.Time
	dark     bool
	speeds   []float64
	stuck    map[int]bool // ids that never yield
	lost     map[int]bool // ids that get no member
	dead     map[int]bool // ids whose pods do not answer, and that are still members
	fragile  bool         // pods with more than they work off are not Ready
	foreign  string       // who wrote the target
	scaler   string       // who wrote the number of pods
	scaled   time.Time    // when that was, as the object says
	ours     bool         // it was an autoscaler
	silent   bool         // the answers to writes are lost
	full     int          // how many pods the cluster has room for, 0 for any number
	frozen   bool         // a change of the number of pods is not carried out
	hpa      int          // by how many pods an HPA grows in 15 s, or by as many as there are; 0: the decider scales
	wanted   int          // what was published for the HPA
	looks    time.Time    // when the HPA looks next

	ups, downs, targets int
	history             []decide.Decision
	overloaded          time.Duration // for how long some id had more than it works off
	pods                time.Duration // the sum of the times of all pods
	start               time.Time
}

func newWorld(t *testing.T, partitions, pods int, load func(p int, after time.Duration) float64) *world {
	t.Helper()
	start := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	w := &world{
		t: t, decider: &decide.Decider{Settings: settings()}, tick: tick, now: start, start: start,
		random:     rand.New(rand.NewPCG(1, 2)), //nolint:gosec // not for secrets
		partitions: partitions, count: pods, row: placement.Owners{}, due: map[int]time.Time{}, load: load, stuck: map[int]bool{}, speeds: make([]float64, partitions),
	}
	for id := range pods {
		w.row[id] = placement.Set{}
	}
	w.row = w.aim()
	return w
}

func (w *world) aim() placement.Owners {
	members := slices.DeleteFunc(w.row.IDs(), func(id int) bool { return id >= w.count })
	return placement.External(placement.Input{Partitions: w.partitions, Count: w.count, Members: members, Owners: w.row, Target: w.target})
}

// live brings what idalloc and Kubernetes do up to date.
func (w *world) live() {
	for id := range w.count {
		_, member := w.row[id]
		due, coming := w.due[id]
		switch {
		case member || (w.full > 0 && id >= w.full) || w.lost[id]:
		case !coming:
			w.due[id] = w.now.Add(20 * time.Second)
		case !w.now.Before(due):
			w.row[id] = placement.Set{}
			delete(w.due, id)
		}
	}
	aim := w.aim()
	if aim.Equal(w.row) {
		w.settles = time.Time{}
		return
	}
	if w.settles.IsZero() {
		w.settles = w.now.Add(10 * time.Second)
	}
	if w.now.Before(w.settles) {
		return
	}
	next := placement.Owners{}
	for id, set := range aim {
		for from, has := range w.row {
			if from != id && w.stuck[from] && from < w.count {
				set = set.Minus(has)
			}
		}
		if w.stuck[id] {
			set = set.Union(w.row[id])
		}
		next[id] = set
	}
	w.row, w.settles = next, time.Time{}
}

// step lets one tick pass and does what the decider says.
func (w *world) step() {
	w.t.Helper()
	w.now = w.now.Add(w.tick)
	w.follow()
	w.live()
	if !w.dark {
		w.speeds = make([]float64, w.partitions)
		for p := range w.speeds {
			w.speeds[p] = w.load(p, w.now.Sub(w.start))
		}
		w.measured = w.now
	}
	w.measure()
	d := w.decider.Decide(w.seen(), w.now)
	w.history = append(w.history, d)
	w.wanted = d.Wanted
	switch {
	case w.hpa > 0 && d.Action == decide.Scale:
		w.decider.Published(d)
		return
	case !w.frozen && !w.silent:
		defer func() { w.decider.Wrote(d, w.now) }()
	}
	switch d.Action {
	case decide.Scale:
		w.scale(d)
	case decide.Assign:
		w.assign(d)
	case decide.Nothing:
		if d.Wanted != w.count && w.hpa == 0 {
			w.t.Fatalf("nothing is to be done, and %d of %d pods are wanted: %s", d.Wanted, w.count, d.Why)
		}
	}
}

// follow lets an HPA take its step.
func (w *world) follow() {
	if w.hpa == 0 || w.now.Before(w.looks) {
		return
	}
	w.looks = w.now.Add(15 * time.Second)
	next := min(w.wanted, w.count+max(w.count, w.hpa))
	if next == w.count || w.wanted == 0 {
		return
	}
	if w.downs++; next > w.count {
		w.ups, w.downs = w.ups+1, w.downs-1
	}
	maps.DeleteFunc(w.row, func(id int, _ placement.Set) bool { return id >= next })
	w.count, w.scaled = next, w.now
}

func (w *world) seen() decide.Seen {
	absent := map[int]string{}
	for id := range w.dead {
		absent[id] = "its pod is not Ready"
	}
	unready := map[int]bool{}
	for id := range w.row {
		if w.fragile && w.sum(id) > w.decider.Settings.Capacity {
			absent[id], unready[id] = "its pod is not Ready", true
		}
	}
	return decide.Seen{
		Count: w.count, Partitions: w.partitions, Row: w.row, Target: w.target, Foreign: w.foreign, Scaler: w.scaler, Scaled: w.scaled, Ours: w.ours, Absent: absent, Unready: unready,
		Loads: decide.Loads{Speeds: w.speeds, At: w.measured},
	}
}

// scale checks the rules of scaling.
func (w *world) scale(d decide.Decision) {
	w.t.Helper()
	if d.Wanted == w.count {
		w.t.Fatalf("scale from %d to %d: %s", w.count, d.Wanted, d.Why)
	}
	for id, set := range w.row {
		if id >= d.Wanted && !set.Empty() {
			w.t.Fatalf("scale to %d pods, and id %d owns %s: %s", d.Wanted, id, set, d.Why)
		}
	}
	s := w.decider.Settings
	if d.Wanted < max(s.Min, 1) || (s.Max > 0 && d.Wanted > s.Max) {
		w.t.Fatalf("scale to %d pods: %s", d.Wanted, d.Why)
	}
	if w.frozen {
		return
	}
	if d.Wanted > w.count {
		w.ups++
	} else {
		w.downs++
		for id := d.Wanted; id < w.count; id++ {
			delete(w.row, id)
			delete(w.due, id)
		}
	}
	w.count, w.scaled = d.Wanted, w.now
}

// assign checks the rules of a target.
func (w *world) assign(d decide.Decision) {
	w.t.Helper()
	if !w.aim().Equal(w.row) && d.Reason != decide.Restore {
		w.t.Fatalf("a target while a move is under way: %s", d.Why)
	}
	owned := placement.Set{}
	for id, set := range d.Target {
		if _, member := w.row[id]; !member && !set.Empty() {
			w.t.Fatalf("the target gives %s to id %d, which is no member: %s", set, id, d.Why)
		}
		if w.dead[id] && !set.Equal(w.row[id]) {
			w.t.Fatalf("the target gives %s to id %d, which has %s and a pod that does not answer: %s", set, id, w.row[id], d.Why)
		}
		if !owned.Intersect(set).Empty() {
			w.t.Fatalf("the target has two owners for %s", owned.Intersect(set))
		}
		owned = owned.Union(set)
	}
	if owned.Len() != w.partitions {
		w.t.Fatalf("the target names %d of %d partitions", owned.Len(), w.partitions)
	}
	w.target, w.foreign = d.Target, ""
	w.targets++
}

// measure sums up what users feel and pay.
func (w *world) measure() {
	w.pods += time.Duration(w.count) * w.tick
	for _, set := range w.row {
		sum := 0.0
		for p := range set.All() {
			sum += w.speeds[p]
		}
		if sum > w.decider.Settings.Capacity {
			w.overloaded += w.tick
			return
		}
	}
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.step()
	}
}

// scalings returns how often the number of pods changed.
func (w *world) scalings() int { return w.ups + w.downs }

// flat is a load that each partition always has.
func flat(each float64) func(int, time.Duration) float64 {
	return func(int, time.Duration) float64 { return each }
}

// last returns the last decision.
func (w *world) last() decide.Decision { return w.history[len(w.history)-1] }

// settled checks that the load has the pods it needs, and that nothing is under way.
func (w *world) settled(least, most int) {
	w.t.Helper()
	if w.last().Phase != decide.Idle || w.count < least || w.count > most {
		w.t.Errorf("%d pods, want %d to %d, at rest: %s: %s", w.count, least, most, w.last().Phase, w.last().Why)
	}
}

func (w *world) sum(id int) float64 {
	sum := 0.0
	for p := range w.row[id].All() {
		sum += w.speeds[p]
	}
	return sum
}
