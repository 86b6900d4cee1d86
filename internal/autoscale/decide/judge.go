package decide

import (
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/partition/packing"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// judge decides on a workload that is at rest, and whose loads are known.
func (d *Decider) judge(s Seen, now time.Time) Decision {
	usable, waits := d.usable(s, now)
	if waits != nil {
		return *waits
	}
	busiest, over := d.busiest(s)
	tooFew, tooMany := s.Count < d.Settings.Min, d.Settings.Max > 0 && s.Count > d.Settings.Max
	needsMore := (over || tooFew) && !tooMany
	lean := d.pack(s, 1-d.Settings.Spare, d.Settings.Min, d.Settings.Max)
	fewer := since(&d.fewer, !needsMore && (lean.Pods < s.Count || used(s.Row) < s.Count), now)
	switch {
	case needsMore:
		return d.more(s, now, usable, busiest, tooFew)
	case d.fewer.IsZero():
		since(&d.short, false, now)
		return d.rest(s, busiest, lean.Oversized)
	default:
		since(&d.short, false, now)
		return d.less(s, now, usable, lean, fewer, tooMany)
	}
}

// usable returns how many of the lowest ids are members. It also returns a decision to wait while others may still become members.
func (d *Decider) usable(s Seen, now time.Time) (int, *Decision) {
	n := 0
	for ; n < s.Count; n++ {
		if _, member := s.Row[n]; !member {
			break
		}
	}
	joining := since(&d.joining, n < s.Count, now)
	if n == s.Count || (n > 0 && joining > d.Settings.Patience) {
		return n, nil
	}
	w := Decision{Phase: Moving, Action: Nothing, Wanted: s.Count, Stuck: joining > d.Settings.Patience}
	w.Warn = w.Stuck
	w.Why = fmt.Sprintf("id %d of %d has not been a member for %s: it has no pod that works on partitions", n, s.Count, seconds(joining))
	return n, &w
}

// load is what an id has to work off, its margins included.
type load struct {
	id     int
	amount float64
	parts  int
}

func (d *Decider) load(s Seen, owners placement.Owners, id int) load {
	l := load{id: id, parts: owners[id].Len()}
	for p := range owners[id].All() {
		l.amount += s.Loads.Speeds[p] + d.Settings.Margin
	}
	return l
}

// busiest returns the id with the highest load. over says that some id has more than it works off, and several partitions, so that
// another division may help.
func (d *Decider) busiest(s Seen) (most load, over bool) {
	most.id = -1
	for _, id := range s.Row.IDs() {
		l := d.load(s, s.Row, id)
		if l.amount > d.Settings.Capacity && l.parts > 1 {
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

// peak returns the highest load of an id.
func (d *Decider) peak(s Seen, owners placement.Owners) float64 {
	most := 0.0
	for id := range owners {
		most = max(most, d.load(s, owners, id).amount)
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

// rest says that nothing is to be done.
func (d *Decider) rest(s Seen, busiest load, oversized []int) Decision {
	w := Decision{Phase: Idle, Action: Nothing, Wanted: s.Count, Oversized: oversized}
	w.Why = fmt.Sprintf("%d pods are enough: the busiest, id %d, has %s of %s units/s", s.Count, busiest.id, figure(busiest.amount), figure(d.Settings.Capacity))
	if d.Settings.Max > 0 && s.Count > d.Settings.Max {
		w.Why = fmt.Sprintf("%d pods are more than --max-replicas %d", s.Count, d.Settings.Max)
	}
	if len(oversized) > 0 {
		w.Why += warnOversized(oversized)
		w.Warn = true
	}
	return w
}

func warnOversized(oversized []int) string {
	return fmt.Sprintf("; partitions %s grow faster than a pod works off by itself: split them, or give pods more capacity", short(placement.Of(oversized...).String()))
}

// more decides on a workload in which a pod has more than it works off, or that has fewer pods than it must have.
func (d *Decider) more(s Seen, now time.Time, usable int, busiest load, tooFew bool) Decision {
	// No pod is closed for the load of another one: that is decided in less.
	low := s.Count
	if d.Settings.Max > 0 {
		low = min(low, d.Settings.Max)
	}
	wide := d.pack(s, 1, max(low, d.Settings.Min), d.Settings.Max)
	cause, reason := fmt.Sprintf("id %d has %s of %s units/s", busiest.id, figure(busiest.amount), figure(d.Settings.Capacity)), Overload
	if tooFew {
		cause, reason = fmt.Sprintf("%d pods are fewer than --min-replicas %d", s.Count, d.Settings.Min), Bounds
	}
	grows := wide.Pods > s.Count && usable == s.Count
	wanting := since(&d.short, grows && d.early(now) == 0, now)
	if wide.Pods <= usable || !grows || wanting > d.Settings.Patience {
		if w := d.spread(s, now, wide, usable, cause, reason); w.Action == Assign || !grows {
			return w
		}
	}
	w := Decision{Phase: Acting, Action: Scale, Reason: reason, Wanted: wide.Pods, Oversized: wide.Oversized}
	w.Why = fmt.Sprintf("%s: scale from %d to %d pods, which work off %s units/s of %d partitions", cause, s.Count, wide.Pods, figure(total(s)), s.Partitions)
	return d.unlessEarly(s, now, w)
}

// spread divides the partitions among the members.
func (d *Decider) spread(s Seen, now time.Time, wide packing.Packing, usable int, cause string, reason Reason) Decision {
	w := Decision{Phase: Acting, Action: Assign, Reason: reason, Wanted: s.Count, Target: wide.Owners, Oversized: wide.Oversized}
	if wide.Pods > usable {
		w.Reason, w.Target = Balance, d.pack(s, 1, usable, usable).Owners
	}
	before, after := d.peak(s, s.Row), d.peak(s, w.Target)
	full := after > d.Settings.Capacity // there is no room for all, so a move only pays if it makes things better
	if same(w.Target, s.Row) || (full && before-after < gain*d.Settings.Capacity) {
		w = Decision{Phase: Idle, Action: Nothing, Wanted: s.Count, Oversized: w.Oversized, Warn: true}
		w.Why = fmt.Sprintf("%s, and no other division among %d pods is better by %.0f%%%s", cause, usable, 100*gain, d.bound(s))
		if len(w.Oversized) > 0 {
			w.Why += warnOversized(w.Oversized)
		}
		return w
	}
	w.Moved = moved(s, w.Target)
	w.Why = fmt.Sprintf("%s: move %s units/s among %d pods, after which the busiest has %s", cause, figure(w.Moved), usable, figure(after))
	if wait := d.Settings.Every - now.Sub(d.assigned); !d.assigned.IsZero() && wait > 0 {
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

// less decides on a workload for which fewer pods are enough.
func (d *Decider) less(s Seen, now time.Time, usable int, lean packing.Packing, fewer time.Duration, tooMany bool) Decision {
	w := Decision{Phase: Acting, Reason: Fewer, Wanted: s.Count, Oversized: lean.Oversized}
	empty := max(used(s.Row), d.Settings.Min, 1)
	switch {
	case empty < s.Count && empty <= max(lean.Pods, d.Settings.Min):
		w.Action, w.Reason, w.Wanted = Scale, Empty, empty
		w.Why = fmt.Sprintf("no id from %d on owns a partition: scale from %d to %d pods", empty, s.Count, empty)
	case lean.Pods < s.Count && lean.Pods > usable:
		return d.rest(s, load{id: used(s.Row) - 1, amount: d.peak(s, s.Row)}, lean.Oversized)
	case lean.Pods < s.Count:
		w.Action, w.Target = Assign, lean.Owners
		w.Moved = moved(s, lean.Owners)
		w.Why = fmt.Sprintf("%d of %d pods work off %s units/s of %d partitions and have %.0f%% to spare: move %s units/s to them",
			lean.Pods, s.Count, figure(total(s)), s.Partitions, 100*d.Settings.Spare, figure(w.Moved))
	default:
		return d.rest(s, load{id: used(s.Row) - 1, amount: d.peak(s, s.Row)}, lean.Oversized)
	}
	if tooMany {
		w.Reason = Bounds
		w.Why = fmt.Sprintf("%d pods are more than --max-replicas %d: ", s.Count, d.Settings.Max) + w.Why
	} else if wait := d.Settings.AfterDown - fewer; wait > 0 {
		return waiting(s, w, wait)
	}
	w = d.unlessEarly(s, now, w)
	if w.Action == Assign {
		if same(w.Target, s.Row) {
			return d.rest(s, load{id: used(s.Row) - 1, amount: d.peak(s, s.Row)}, lean.Oversized)
		}
		if wait := d.Settings.Every - now.Sub(d.assigned); !d.assigned.IsZero() && wait > 0 {
			return waiting(s, w, wait)
		}
	}
	return w
}

// early returns how long scaling still has to wait.
func (d *Decider) early(now time.Time) time.Duration {
	wait := time.Duration(0)
	if !d.up.IsZero() {
		wait = max(wait, d.Settings.AfterUp-now.Sub(d.up))
	}
	if !d.down.IsZero() {
		wait = max(wait, d.Settings.AfterDown-now.Sub(d.down))
	}
	return wait
}

func (d *Decider) unlessEarly(s Seen, now time.Time, w Decision) Decision {
	if wait := d.early(now); wait > 0 {
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

// figure prints a number with four significant digits, and without an exponent where it is of a usual size.
func figure(v float64) string {
	if v >= 1000 && v < 1e15 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}
