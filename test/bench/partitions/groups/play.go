package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// patience bounds what one change may take.
	patience = 5 * time.Minute
	look     = 50 * time.Millisecond
)

// contender is one way to have each partition worked on by one member.
type contender struct {
	name string
	// limits are the times that it has by default and that matter here.
	limits string
	// level says that it gives each member as many partitions as any other, or one more.
	level bool
	open  func(ctx context.Context, o options, b *book) (system, error)
}

// system is a contender that runs.
type system interface {
	// join has one member more start.
	join(ctx context.Context) error
	// leave has a member stop in order. Kubernetes chooses by itself which pod of a Deployment goes.
	leave(ctx context.Context, member string) error
	// replace ends a member, without a word if it crashes, and has another one start at once, as Kubernetes does.
	replace(ctx context.Context, member string, crash bool) error
	// roll replaces all members as a Deployment does by default: a new one starts, and an old one stops. settle waits until that is done.
	roll(ctx context.Context, settle func() error) error
	// members are those that run.
	members() []string
	close() error
}

// result is what one contender's scene came to.
type result struct {
	contender
	scene string
	// moved are the times for which no pod worked on a partition that moved, stayed those for which no pod worked on another one.
	moved, stayed []time.Duration
	// most is the largest number of partitions that a member had at the end of any round.
	most int
}

func scenes() []string { return []string{"join", "leave", "crash", "evict", "rollout"} }

// play has a contender play all scenes.
func play(ctx context.Context, c contender, o options, progress io.Writer) (results []result, err error) {
	b := newBook(o.partitions)
	s, err := c.open(ctx, o, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for range o.members {
		if err := s.join(ctx); err != nil {
			return nil, err
		}
	}
	g := &stage{system: s, book: b, level: c.level, apart: o.apart}
	if err := g.settle(ctx, o.members); err != nil {
		return nil, err
	}
	for _, scene := range scenes() {
		results = append(results, result{contender: c, scene: scene})
	}
	for range o.rounds {
		for i, act := range []func(context.Context, int) error{g.join, g.leave, g.crash, g.evict, g.rollout} {
			b.take()
			if err := act(ctx, o.members); err != nil {
				return nil, fmt.Errorf("%s: %w", results[i].scene, err)
			}
			results[i].add(b.take())
			_, most := b.busiest(s.members())
			results[i].most = max(results[i].most, most)
			if _, err := fmt.Fprintln(progress, row(results[i])); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

func (r *result) add(gaps []gap) {
	for _, g := range gaps {
		if g.moved {
			r.moved = append(r.moved, g.long)
		} else {
			r.stayed = append(r.stayed, g.long)
		}
	}
	slices.Sort(r.moved)
	slices.Sort(r.stayed)
}

// stage is where a system plays.
type stage struct {
	system
	*book
	level bool
	apart time.Duration
}

// settle waits until n members work on all partitions, and then until the next change is to come.
func (g *stage) settle(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not settled after %s", patience))
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, look, true, func(context.Context) (bool, error) {
		members := g.members()
		return len(members) == n && g.settled(members, g.level, time.Now()), nil
	})
	if err != nil {
		return context.Cause(ctx)
	}
	return pause(ctx, rand.N(g.apart+1)) //nolint:gosec // no secret
}

func (g *stage) join(ctx context.Context, n int) error {
	return errors.Join(g.system.join(ctx), g.settle(ctx, n+1))
}

func (g *stage) leave(ctx context.Context, n int) error {
	busiest, _ := g.busiest(g.members())
	return errors.Join(g.system.leave(ctx, busiest), g.settle(ctx, n))
}

func (g *stage) crash(ctx context.Context, n int) error {
	busiest, _ := g.busiest(g.members())
	return errors.Join(g.replace(ctx, busiest, true), g.settle(ctx, n))
}

// evict replaces all members, each after the one before has settled.
func (g *stage) evict(ctx context.Context, n int) error {
	for _, member := range g.members() {
		if err := errors.Join(g.replace(ctx, member, false), g.settle(ctx, n)); err != nil {
			return err
		}
	}
	return nil
}

func (g *stage) rollout(ctx context.Context, n int) error {
	settle := func() error { return g.settle(ctx, n) }
	return errors.Join(g.roll(ctx, settle), settle())
}
