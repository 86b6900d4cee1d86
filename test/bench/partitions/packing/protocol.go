package main

import (
	"math/rand/v2"
	"slices"

	"github.com/idalloc/idalloc/autoscaler/packing"
	"github.com/idalloc/idalloc/pkg/placement"
)

// fastest is the highest speed of a partition. Speeds are whole numbers up to it, as in the paper's generator.
const fastest = 100

// steps are the largest changes of a speed from one measurement to the next.
func steps() []int { return []int{0, 5, 10, 15, 20, 25} }

// protocol is how much is played. A pod can work off one of the fastest partitions.
type protocol struct{ partitions, measurements, seeds int }

// algorithm packs. The published ones may leave ids out, as if any pod could be ended and not only those with the highest ids.
type algorithm func(in packing.Input) packing.Packing

// contender is an algorithm with its name.
type contender struct {
	name string
	pack algorithm
}

// The names of two contenders.
const (
	ours             = "pack"
	modifiedWorstFit = "modified-worst-fit"
)

// contenders are Pack; Best Fit Decreasing; and two modified ones of Landau, Andrade and Barbosa ("Kafka Consumer Group Autoscaler", arXiv 2206.11170;
// with Saurabh, arXiv 2402.06085): their best for moves, and their best for pods.
func contenders() []contender {
	return []contender{
		{ours, packing.Pack},
		{modifiedWorstFit, modified(worstFit)},
		{"modified-best-fit", modified(bestFit)},
		{"best-fit-decreasing", bestFitDecreasing},
	}
}

// chosen returns the contenders with these names.
func chosen(names ...string) []contender {
	return slices.DeleteFunc(contenders(), func(c contender) bool { return !slices.Contains(names, c.name) })
}

// score is what an algorithm needed and moved, as a mean over the measurements of all walks.
type score struct {
	step       int
	name       string
	pods       float64
	overBound  float64 // pods above the lower bound, as a part of it
	overFewest float64 // the same above the fewest pods of all algorithms: the paper's cardinal bin score
	moved      float64 // what moved, in capacities: the paper's R
}

// playAll plays walks for each size of the steps.
func (p protocol) playAll() (scores []score) {
	for _, step := range steps() {
		scores = append(scores, p.play(step, contenders())...)
	}
	return scores
}

// play has contenders pack the same walks.
func (p protocol) play(step int, playing []contender) []score {
	scores := make([]score, len(playing))
	for j, c := range playing {
		scores[j].step, scores[j].name = step, c.name
	}
	for seed := range p.seeds {
		p.walk(step, seed, playing, scores)
	}
	return scores
}

// walk adds the part of one walk to the scores.
func (p protocol) walk(step, seed int, playing []contender, scores []score) {
	r := rand.New(rand.NewPCG(uint64(seed)+1, uint64(step))) //nolint:gosec // the same ones each time
	owners, pods := make([]placement.Owners, len(playing)), make([]int, len(playing))
	in := packing.Input{Speeds: make([]float64, p.partitions), Capacity: fastest}
	part := 1 / float64(p.measurements*p.seeds)
	for i := range p.measurements {
		advance(r, in.Speeds, step, i == 0)
		for j, c := range playing {
			in.Owners = owners[j]
			packed := c.pack(in)
			scores[j].moved += packing.Moved(in.Speeds, in.Owners, packed.Owners) / in.Capacity * part
			owners[j], pods[j] = packed.Owners, packed.Pods
		}
		bound, fewest := float64(packing.LowerBound(in)), float64(slices.Min(pods))
		for j, n := range pods {
			scores[j].pods += float64(n) * part
			scores[j].overBound += (float64(n)/bound - 1) * part
			scores[j].overFewest += (float64(n)/fewest - 1) * part
		}
	}
}

// advance draws the first measurement, or the next one: each speed goes up or down by up to step, and stays between 0 and the fastest.
func advance(r *rand.Rand, speeds []float64, step int, first bool) {
	for p, s := range speeds {
		if first {
			speeds[p] = float64(r.IntN(fastest + 1))
		} else {
			speeds[p] = min(max(s+float64(r.IntN(2*step+1)-step), 0), fastest)
		}
	}
}
