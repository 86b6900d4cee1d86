package main

import (
	"time"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/measure"
)

// size is how much is divided among how many.
type size struct{ partitions, members int }

// cost is what a script cost with a contender.
type cost struct {
	size
	script, contender string
	steps             int
	balance           float64       // the mean of the balance degrees after each step
	stickiness        float64       // the share of all partitions that stay, the mean over the steps
	moves             int           // of all steps
	bytes             int           // the longest text of the owners after a step
	ideal             int           // the fewest moves that keep members balanced which start balanced
	took              time.Duration // the mean time of a step
}

// play has all contenders play all scripts.
func play(s size) []cost {
	all, playing := scripts(s.members), contenders()
	costs := make([]cost, 0, len(all)*len(playing))
	for _, script := range all {
		ideal := playOne(s, script, sticky()).ideal
		for _, c := range playing {
			got := playOne(s, script, c)
			got.ideal = ideal
			costs = append(costs, got)
		}
	}
	return costs
}

// playOne plays a script. ideal is what it would be from where the contender itself was at each step.
func playOne(s size, sc script, c contender) cost {
	got := cost{size: s, script: sc.name, contender: c.name, steps: len(sc.members) - 1}
	in := placement.Input{Partitions: s.partitions, Members: sc.members[0]}
	in.Owners, _ = c.divide(in)
	for _, members := range sc.members[1:] {
		in.Members = members
		got.ideal += measure.IdealMoves(in)
		after, took := c.divide(in)
		got.took += took / time.Duration(got.steps)
		got.bytes = max(got.bytes, len(after.String()))
		got.moves += measure.Moves(in.Owners, after)
		got.balance += measure.BalanceDegree(after) / float64(got.steps)
		got.stickiness += measure.StickinessOfAll(in.Owners, after, s.partitions) / float64(got.steps)
		in.Owners = after
	}
	return got
}
