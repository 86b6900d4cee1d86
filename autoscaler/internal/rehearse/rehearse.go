// Package rehearse replays recorded loads against a workload in memory, and reports what the autoscaler would have done. It reads no clock: a day takes only as
// long as its decisions.
package rehearse

import (
	"fmt"
	"slices"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/packing"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Options configure how the workload behaves.
type Options struct {
	Settings decide.Settings
	// Pods is the number of pods at the start.
	Pods int
	// Period is the time between two decisions. Join is the time until a new pod becomes a member. Move is the time until partitions are where the target has
	// them.
	Period, Join, Move time.Duration
}

// Line is a decision that wrote something, or the first of several with the same warning.
type Line struct {
	At       time.Duration
	Pods     int // before
	Decision decide.Decision
}

// String returns the line as the command prints it.
func (l Line) String() string {
	what := string(l.Decision.Action)
	switch l.Decision.Action {
	case decide.Nothing:
		what = "warning"
	case decide.Scale:
		what = fmt.Sprintf("scale %d to %d", l.Pods, l.Decision.Wanted)
	case decide.Assign:
	}
	return fmt.Sprintf("%8s  %-14s  %s", l.At, what, l.Decision.Why)
}

// Summary is the result of a rehearsal.
type Summary struct {
	// Took is the duration of the loads.
	Took time.Duration
	// Ups and Downs count changes of the number of pods, Targets those of the target. Moved is the speed of the moved partitions.
	Ups, Downs, Targets int
	Moved               float64
	Fewest, Most        int
	// PodTime is the total time of all pods. Overloaded is how long some pod had more than it works off.
	PodTime, Overloaded time.Duration
}

// String returns the summary as the command prints it.
func (s Summary) String() string {
	return fmt.Sprintf("%s: %d to %d pods, %.1f pod-hours; scaled up %d times and down %d times; %d targets moved %.3g units/s; a pod was overloaded for %s",
		s.Took, s.Fewest, s.Most, s.PodTime.Hours(), s.Ups, s.Downs, s.Targets, s.Moved, s.Overloaded)
}

// play is a workload in memory.
type play struct {
	o           Options
	start, now  time.Time
	count       int
	row, target placement.Owners
	joins       map[int]time.Time
	arrives     time.Time // end of the current move, zero if there is none
	summary     Summary
	said        string
}

// Play replays the loads and calls say for each line.
func Play(o Options, loads Loads, say func(Line)) Summary {
	p := &play{o: o, start: time.Unix(0, 0).Add(loads.First()), count: o.Pods, row: placement.Owners{}, joins: map[int]time.Time{}}
	for id := range o.Pods {
		p.row[id] = placement.Set{}
	}
	p.row = p.aim(loads.Partitions)
	p.summary.Fewest, p.summary.Most = o.Pods, o.Pods
	decider := &decide.Decider{Settings: o.Settings}
	for after := loads.First(); after <= loads.Last(); after += o.Period {
		p.now = p.start.Add(after - loads.First())
		p.live(loads.Partitions)
		now := loads.At(after)
		now.At = p.now
		p.measure(now)
		d := decider.Decide(decide.Seen{Count: p.count, Partitions: loads.Partitions, Row: p.row, Target: p.target, Loads: now}, p.now)
		p.print(d, say)
		p.do(d)
		decider.Wrote(d, p.now)
	}
	p.summary.Took = loads.Last() - loads.First()
	return p.summary
}

func (p *play) aim(partitions int) placement.Owners {
	members := slices.DeleteFunc(p.row.IDs(), func(id int) bool { return id >= p.count })
	return placement.External(placement.Input{Partitions: partitions, Count: p.count, Members: members, Owners: p.row, Target: p.target})
}

// live simulates what pods do by themselves.
func (p *play) live(partitions int) {
	for id := range p.count {
		if _, member := p.row[id]; member {
			continue
		}
		if p.joins[id].IsZero() {
			p.joins[id] = p.now.Add(p.o.Join)
		}
		if !p.now.Before(p.joins[id]) {
			p.row[id] = placement.Set{}
			delete(p.joins, id)
		}
	}
	aim := p.aim(partitions)
	switch {
	case aim.Equal(p.row):
		p.arrives = time.Time{}
	case p.arrives.IsZero():
		p.arrives = p.now.Add(p.o.Move)
	case !p.now.Before(p.arrives):
		p.row, p.arrives = aim, time.Time{}
	}
}

func (p *play) measure(now decide.Loads) {
	p.summary.PodTime += time.Duration(p.count) * p.o.Period
	for _, set := range p.row {
		sum, in := int64(0), packing.Input{Speeds: now.Speeds, Capacity: p.o.Settings.Capacity}
		for k := range set.All() {
			sum += in.Size(k)
		}
		if !packing.Fits(sum) {
			p.summary.Overloaded += p.o.Period
			return
		}
	}
}

func (p *play) print(d decide.Decision, say func(Line)) {
	key := ""
	if d.Warn {
		key = fmt.Sprint(d.Phase, d.Reason, d.Oversized, d.Stuck)
	}
	if d.Action != decide.Nothing || (d.Warn && key != p.said) {
		say(Line{At: p.now.Sub(p.start), Pods: p.count, Decision: d})
	}
	p.said = key
}

func (p *play) do(d decide.Decision) {
	s := &p.summary
	switch d.Action {
	case decide.Nothing:
	case decide.Assign:
		p.target = d.Target
		s.Targets++
		s.Moved += d.Moved
	case decide.Scale:
		if d.Wanted > p.count {
			s.Ups++
		} else {
			s.Downs++
		}
		for id := d.Wanted; id < p.count; id++ {
			delete(p.row, id)
			delete(p.joins, id)
		}
		p.count = d.Wanted
		s.Fewest, s.Most = min(s.Fewest, p.count), max(s.Most, p.count)
	}
}
