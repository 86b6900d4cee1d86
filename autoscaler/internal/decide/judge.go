package decide

import (
	"fmt"
	"time"

	"github.com/idalloc/idalloc/autoscaler/packing"
	"github.com/idalloc/idalloc/pkg/placement"
)

// judge decides on a workload that is at rest and whose loads are known. there are the ids that count.
func (d *Decider) judge(s Seen, there []int, now time.Time) Decision {
	v := d.view(s, there, now)
	if waits := d.absent(v, now); waits != nil {
		return *waits
	}
	busiest, over := d.busiest(v)
	tooFew, tooMany := s.Count < d.Settings.Min, d.Settings.Max > 0 && s.Count > d.Settings.Max
	needsMore := (over || tooFew) && !tooMany
	if needsMore != (d.wish > s.Count) {
		d.wish = 0
	}
	lean := d.pack(v, 1-d.Settings.Spare, v.below(d.Settings.Min), v.most(d.Settings.Max))
	pods := max(v.pods(lean.Pods), used(v.kept))
	enough := !needsMore && (pods < s.Count || used(s.Row) < s.Count)
	fewer := d.fewer(enough, now)
	switch {
	case needsMore:
		return d.more(v, now, busiest, tooFew)
	case !enough:
		since(&d.short, false, now)
		return d.rest(v, busiest)
	default:
		since(&d.short, false, now)
		return d.less(v, now, busiest, lean, pods, fewer, tooMany)
	}
}

// absent returns a decision to wait while ids may still begin to count. If no id counts, only new pods can help, and only if there are strained pods.
func (d *Decider) absent(v view, now time.Time) *Decision {
	waited := since(&d.joining, len(v.ids) < v.Count, now)
	stuck := waited > d.Settings.Patience
	helps := len(v.ids) > 0 || (len(v.strained) > 0 && v.pods(1) > v.Count && (d.Settings.Max <= 0 || v.Count < d.Settings.Max))
	if len(v.ids) == v.Count || (stuck && helps) {
		return nil
	}
	return &Decision{Phase: Moving, Action: Nothing, Wanted: d.wanted(v.Seen), Stuck: stuck, Warn: stuck, Why: v.missing}
}

// load is the load of an id, with its margins.
type load struct {
	id     int
	amount float64
	size   int64 // as the packing counts it
	parts  int
}

func (d *Decider) load(s Seen, owners placement.Owners, id int) load {
	l := load{id: id, parts: owners[id].Len()}
	for p := range owners[id].All() {
		l.amount += s.Loads.Speeds[p] + d.Settings.Margin
		l.size += d.input(s.Loads.Speeds).Size(p)
	}
	return l
}

// input returns the input of the packing for partitions with these speeds.
func (d *Decider) input(speeds []float64) packing.Input {
	return packing.Input{Speeds: speeds, Capacity: d.Settings.Capacity, Margin: d.Settings.Margin}
}

// overloaded reports whether an id has more load than it works off, and several partitions, so that another division may help.
func (l load) overloaded() bool { return !packing.Fits(l.size) && l.parts > 1 }

// busiest returns the id with the highest load. over is true if any id is overloaded.
func (d *Decider) busiest(v view) (most load, over bool) {
	most.id = -1
	for _, id := range v.judged() {
		l := d.load(v.Seen, v.Row, id)
		if l.overloaded() {
			if !over || l.amount > most.amount {
				most = l
			}
			over = true
		} else if !over && (most.id < 0 || l.amount > most.amount) {
			most = l
		}
	}
	return most, over
}

// peak returns the highest load of an id whose load counts.
func (d *Decider) peak(v view, owners placement.Owners) load {
	most := load{}
	for _, id := range v.judged() {
		if l := d.load(v.Seen, owners, id); l.size >= most.size {
			most = l
		}
	}
	return most
}

// used returns one more than the highest id that owns something.
func used(row placement.Owners) int {
	n := 0
	for id, set := range row {
		if !set.Empty() {
			n = max(n, id+1)
		}
	}
	return n
}

// rest returns a decision to do nothing.
func (d *Decider) rest(v view, busiest load) Decision {
	s := v.Seen
	w := Decision{Phase: Idle, Action: Nothing, Wanted: s.Count, Oversized: v.oversized}
	w.Why = fmt.Sprintf("%d pods are enough: the busiest, id %d, has %s of %s units/s", s.Count, busiest.id, figure(busiest.amount), figure(d.Settings.Capacity))
	if d.Settings.Max > 0 && s.Count > d.Settings.Max {
		w.Why = fmt.Sprintf("%d pods are more than --max-replicas %d", s.Count, d.Settings.Max)
	}
	if len(v.oversized) > 0 {
		w.Why += warnOversized(v.oversized)
		w.Warn = true
	}
	if len(v.late) > 0 {
		w.Why += fmt.Sprintf("; what waits in %s takes one pod longer than --catch-up", named(placement.Of(v.late...)))
	}
	return v.mention(w)
}

// mention adds the ids that do not count to a decision, with a warning, because a person should look at that.
func (v view) mention(w Decision) Decision {
	if v.missing != "" {
		w.Why += "; " + v.missing
		w.Warn = true
	}
	return w
}

func warnOversized(oversized []int) string {
	return fmt.Sprintf("; a pod does not work off what comes for %s alone: split that, or give pods more capacity", named(placement.Of(oversized...)))
}

// more decides on a workload with an overloaded pod, or with fewer pods than the minimum.
func (d *Decider) more(v view, now time.Time, busiest load, tooFew bool) Decision {
	// This closes no pod because another one is overloaded. Function less closes pods.
	low, high := len(v.ids), v.most(d.Settings.Max)
	if high > 0 {
		low = min(low, high)
	}
	wide := d.pack(v, 1, low, high)
	pods := max(v.pods(wide.Pods), d.Settings.Min)
	cause, reason := fmt.Sprintf("id %d has %s of %s units/s", busiest.id, figure(busiest.amount), figure(d.Settings.Capacity)), Overload
	if tooFew {
		cause, reason = fmt.Sprintf("%d pods are fewer than --min-replicas %d", v.Count, d.Settings.Min), Bounds
	}
	grows := pods > v.Count
	if !grows {
		d.wish = 0
	}
	early := d.early(d.Settings.AfterUp, now)
	wanting := since(&d.short, grows && early == 0, now)
	// While more pods must not be asked for yet, or do not come, the existing ones share the load.
	if !grows || (len(v.ids) > 0 && (early > 0 || wanting > d.Settings.Patience)) {
		if w := d.spread(v, now, wide, cause, reason); w.Action == Assign || !grows {
			return w
		}
	}
	w := Decision{Phase: Acting, Action: Scale, Reason: reason, Wanted: pods, Oversized: v.oversized}
	w.Why = fmt.Sprintf("%s: scale from %d to %d pods, which work off %s units/s of %d partitions", cause, v.Count, pods, figure(total(v.Seen)), v.Partitions)
	return d.unlessEarly(v.Seen, d.Settings.AfterUp, now, v.mention(w))
}

// spread divides the partitions among the members.
func (d *Decider) spread(v view, now time.Time, wide packing.Packing, cause string, reason Reason) Decision {
	s, among := v.Seen, len(v.ids)
	w := Decision{Phase: Acting, Action: Assign, Reason: reason, Wanted: d.wanted(s), Target: wide.Owners, Oversized: v.oversized}
	if wide.Pods > among {
		w.Reason, w.Target = Balance, d.pack(v, 1, among, among).Owners
	}
	before, after := d.peak(v, s.Row), d.peak(v, w.Target)
	full := !packing.Fits(after.size) // there is no room for all, so a move must improve things to be worth it
	better := func(target placement.Owners) bool {
		return before.amount-d.peak(v, target).amount >= gain*d.Settings.Capacity
	}
	if same(w.Target, s.Row) || (full && !better(w.Target)) {
		w = Decision{Phase: Idle, Action: Nothing, Wanted: s.Count, Oversized: w.Oversized, Warn: true}
		w.Why = fmt.Sprintf("%s, and no other division among %d pods is better by %.0f%%%s", cause, among, 100*gain, d.bound(s))
		if len(w.Oversized) > 0 {
			w.Why += warnOversized(w.Oversized)
		}
		return v.mention(w)
	}
	w.Moved = moved(s, w.Target)
	w.Why = fmt.Sprintf("%s: move %s units/s among %d pods, after which the busiest has %s", cause, figure(w.Moved), among, figure(after.amount))
	w = v.mention(w)
	wait := d.sinceTarget(now)
	if full {
		wait = max(wait, d.Settings.Every-d.better.lasts(w.Target, better, d.Settings.MaxAge, now))
	}
	if wait > 0 {
		return waiting(s, w, wait)
	}
	return w
}

func (d *Decider) bound(s Seen) string {
	if d.Settings.Max > 0 && s.Count >= d.Settings.Max {
		return fmt.Sprintf("; --max-replicas is %d", d.Settings.Max)
	}
	return ""
}

// less decides on a workload for which pods, fewer than it has, are enough.
func (d *Decider) less(v view, now time.Time, busiest load, lean packing.Packing, pods int, fewer time.Duration, tooMany bool) Decision {
	s := v.Seen
	w := Decision{Phase: Acting, Reason: Fewer, Wanted: s.Count, Oversized: v.oversized}
	empty := max(used(s.Row), d.Settings.Min, 1)
	switch {
	case empty < s.Count && empty <= max(pods, d.Settings.Min):
		w.Action, w.Reason, w.Wanted = Scale, Empty, empty
		w.Why = fmt.Sprintf("no id from %d on owns a partition: scale from %d to %d pods", empty, s.Count, empty)
	case pods < s.Count && !same(lean.Owners, s.Row):
		w.Action, w.Target = Assign, lean.Owners
		w.Moved = moved(s, lean.Owners)
		w.Why = fmt.Sprintf("%d of %d pods work off %s units/s of %d partitions and have %.0f%% to spare: move %s units/s to them",
			pods, s.Count, figure(total(s)), s.Partitions, 100*d.Settings.Spare, figure(w.Moved))
	default:
		return d.rest(v, busiest)
	}
	if tooMany {
		w.Reason = Bounds
		w.Why = fmt.Sprintf("%d pods are more than --max-replicas %d: ", s.Count, d.Settings.Max) + w.Why
	} else if wait := d.Settings.AfterDown - fewer; wait > 0 {
		return waiting(s, w, wait)
	}
	w = d.unlessEarly(s, d.Settings.AfterDown, now, v.mention(w))
	if wait := d.sinceTarget(now); w.Action == Assign && wait > 0 {
		return waiting(s, w, wait)
	}
	return w
}

// early returns how long scaling must still wait, if it waits this long after the last scaling.
func (d *Decider) early(after time.Duration, now time.Time) time.Duration {
	if d.scaled.IsZero() || d.wish > 0 {
		return 0
	}
	return max(0, after-now.Sub(d.scaled))
}

// sinceTarget returns how long a new target must still wait.
func (d *Decider) sinceTarget(now time.Time) time.Duration {
	if d.assigned.IsZero() {
		return 0
	}
	return d.Settings.Every - now.Sub(d.assigned)
}

func (d *Decider) unlessEarly(s Seen, after time.Duration, now time.Time, w Decision) Decision {
	if wait := d.early(after, now); wait > 0 {
		return waiting(s, w, wait)
	}
	return w
}

// waiting returns a decision to do w later.
func waiting(s Seen, w Decision, wait time.Duration) Decision {
	return Decision{Phase: Waiting, Action: Nothing, Reason: w.Reason, Wanted: s.Count, Oversized: w.Oversized, Why: fmt.Sprintf("in %s at the earliest: %s", seconds(wait), w.Why)}
}

// same reports whether both give the same partitions to the same ids. Ids without partitions do not count.
func same(a, b placement.Owners) bool {
	for _, pair := range [][2]placement.Owners{{a, b}, {b, a}} {
		for id, set := range pair[0] {
			if !set.Equal(pair[1][id]) {
				return false
			}
		}
	}
	return true
}

func total(s Seen) float64 {
	sum := 0.0
	for _, v := range s.Loads.Speeds {
		sum += v
	}
	return sum
}

// moved returns the speed of the partitions that get another owner.
func moved(s Seen, target placement.Owners) float64 {
	sum := 0.0
	for id, set := range target {
		for p := range set.Minus(s.Row[id]).All() {
			sum += s.Loads.Speeds[p]
		}
	}
	return sum
}

// figure formats a number with four significant digits, without an exponent if its size is usual.
func figure(v float64) string {
	if v >= 1000 && v < 1e15 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}
