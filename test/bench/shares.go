package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/bench/table"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// sharesTimeout bounds all events of one workload.
const sharesTimeout = 15 * time.Minute

// shares measures what a change of the number of replicas costs with partitions.
func shares(ctx context.Context, env *suite.Suite, o options) (lines [][]string, err error) {
	lines = [][]string{{
		"planned by", "replicas", "owner writes", "conflicts", "requests", "until settled s", "moved", "idle p50 s", "idle max s", "received MB",
	}}
	for _, by := range slices.DeleteFunc(slices.Clone(o.planners), func(by planner) bool { return by == byNone }) {
		progressf("%d replicas, %d partitions, planned by %s", o.members, o.partitions, by)
		more, err := scaleWith(ctx, env, by, o.members, o.partitions)
		lines = append(lines, more...)
		if err != nil {
			return lines, fmt.Errorf("planned by %s: %w", by, err)
		}
	}
	return lines, nil
}

// scaleWith starts n pods, restarts them step by step, and then has one more, one less, and half as many more.
func scaleWith(ctx context.Context, env *suite.Suite, by planner, n, partitions int) (lines [][]string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sharesTimeout, fmt.Errorf("not done after %s", sharesTimeout))
	defer cancel()
	d := by.plain(n)
	d.Annotations = map[string]string{assignment.PartitionCountKey: strconv.Itoa(partitions)}
	w, err := newWorkload(ctx, env, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	b := &board{count: partitions, works: map[string][]bool{}, since: make([]time.Time, partitions)}
	start, before := time.Now(), counts{}
	p, err := play(ctx, w, false, b.see, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	for i, replicas := range []int{n, n, n + 1, n, n + n/2} {
		what := strconv.Itoa(replicas)
		if i > 0 {
			if err := w.quiet(ctx); err != nil {
				return lines, err
			}
			before, start = w.count.counts(), time.Now()
			b.begin()
		}
		switch i {
		case 0: // they start by themselves
		case 1:
			what += " restarted"
			err = w.renew(ctx, p, replicas)
		default:
			err = w.Scale(ctx, "Deployment", deployment, int32(replicas)) //nolint:gosec // a few thousand
		}
		if err != nil {
			return lines, err
		}
		if err := b.settled(ctx, p, replicas); err != nil {
			return lines, fmt.Errorf("%d replicas: %w", replicas, err)
		}
		took, idle := b.end(start)
		c := w.count.counts().since(before)
		lines = append(lines, []string{
			string(by), what, strconv.Itoa(c.writes), strconv.Itoa(c.conflicts), strconv.Itoa(c.total), table.Seconds(took), strconv.Itoa(len(idle)),
			table.Seconds(table.Percentile(idle, 50)), table.Seconds(table.Percentile(idle, 100)), table.Megabytes(float64(c.received)),
		})
		progressf("%v", lines[len(lines)-1])
	}
	return lines, nil
}

// board says which pod works on which partition, as each was told.
type board struct {
	mu    sync.Mutex
	count int
	// works has the partitions of each pod that has an id.
	works map[string][]bool
	// since is when the last work on a partition ended, zero if a pod works on it.
	since []time.Time
	// changed is when anything changed last.
	changed time.Time
	// idle are the times for which no pod worked on a partition that moved. err is the first violation.
	idle []time.Duration
	err  error
}

// look notes on what a pod works now.
func (b *board) look(pod string, owned func() []idalloc.Partition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	works := make([]bool, b.count)
	for _, p := range owned() {
		works[p.Number] = true
	}
	b.changes(pod, works)
}

// stopped notes that a pod does not work on these partitions any more.
func (b *board) stopped(pod string, set placement.Set) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.works[pod] == nil {
		return
	}
	works := slices.Clone(b.works[pod])
	for k := range set.All() {
		works[k] = false
	}
	b.changes(pod, works)
}

// changes notes on what a pod works. The caller must hold the lock.
func (b *board) changes(pod string, works []bool) {
	before := b.works[pod]
	b.works[pod] = works
	b.changed = time.Now()
	for k := range works {
		was := len(before) > k && before[k]
		switch {
		case was && !works[k]:
			b.since[k] = b.changed
		case !was && works[k]:
			b.begun(pod, k)
		}
	}
}

// begun notes that a pod works on a partition.
func (b *board) begun(pod string, k int) {
	for other, works := range b.works {
		if other != pod && works[k] {
			b.err = errors.Join(b.err, fmt.Errorf("%s and %s work on partition %d", other, pod, k))
		}
	}
	if !b.since[k].IsZero() {
		b.idle = append(b.idle, b.changed.Sub(b.since[k]))
	}
	b.since[k] = time.Time{}
}

// see notes what becomes of a pod's id.
func (b *board) see(s sighting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case s.ended:
		delete(b.works, s.pod)
	case s.id.Assigned() && b.works[s.pod] == nil:
		b.works[s.pod] = make([]bool, b.count)
	default:
		return
	}
	b.changed = s.at
}

// settled waits until there are n pods with ids, and each works on as many partitions as any other, or on one more.
func (b *board) settled(ctx context.Context, p *player, n int) error {
	if err := p.ready(ctx, n); err != nil {
		return err
	}
	return p.w.until(ctx, func(context.Context) (bool, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		total, fair := 0, len(b.works) == n
		for _, works := range b.works {
			has := 0
			for _, does := range works {
				if does {
					has++
				}
			}
			total += has
			fair = fair && has >= b.count/n && has <= (b.count+n-1)/n
		}
		return fair && total == b.count, errors.Join(b.err, p.Err())
	})
}

func (b *board) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = nil
}

// end returns how long the change took, and for how long no pod worked on each partition that moved.
func (b *board) end(start time.Time) (took time.Duration, idle []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.idle)
	return b.changed.Sub(start), b.idle
}
