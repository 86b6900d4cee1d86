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

// The names of some contenders.
const (
	ours              = "pack"
	bestFitDecreasing = "best-fit-decreasing"
	modifiedWorstFit  = "modified-worst-fit"
)

// contenders are Pack; the textbook's First Fit, Best Fit, Worst Fit and their decreasing forms; and the modified ones of Landau, Andrade
// and Barbosa ("Kafka Consumer Group Autoscaler", arXiv 2206.11170; with Saurabh, arXiv 2402.06085). Of these, MWF and MBF open the pods
// with the most load first, and those called partition the ones with the largest partition. The last one is an earlier adaptation of Best
// Fit Decreasing by the same authors, which opens pods by id.
func contenders() []contender {
	first, best, worst := (*group).firstFit, (*group).bestFit, (*group).worstFit
	return []contender{
		{ours, packing.Pack},
		{"first-fit", anyFit(first, false)},
		{"best-fit", anyFit(best, false)},
		{"worst-fit", anyFit(worst, false)},
		{"first-fit-decreasing", anyFit(first, true)},
		{bestFitDecreasing, anyFit(best, true)},
		{"worst-fit-decreasing", anyFit(worst, true)},
		{"modified-best-fit", modified(best, byLoad)},
		{modifiedWorstFit, modified(worst, byLoad)},
		{"modified-best-fit-partition", modified(best, byLargest)},
		{"modified-worst-fit-partition", modified(worst, byLargest)},
		{"pop-best-fit-decreasing", modified(best, byID)},
	}
}

// chosen returns the contenders with these names.
func chosen(names ...string) []contender {
	return slices.DeleteFunc(contenders(), func(c contender) bool { return !slices.Contains(names, c.name) })
}

// score is what an algorithm needed and moved, as a mean over the measurements.
type score struct {
	step, seed int
	name       string
	pods       float64
	overBound  float64 // pods above the lower bound, as a part of it
	overFewest float64 // the same above the fewest pods of all algorithms: the paper's cardinal bin score
	moved      float64 // what moved, in capacities: the paper's R
}

// playAll plays walks for each size of the steps.
func (p protocol) playAll() []score {
	playing, all := contenders(), steps()
	scores := make([]score, 0, len(all)*p.seeds*len(playing))
	for _, step := range all {
		scores = append(scores, p.play(step, playing)...)
	}
	return scores
}

// play has contenders pack the same walks.
func (p protocol) play(step int, playing []contender) []score {
	scores := make([]score, 0, p.seeds*len(playing))
	for seed := range p.seeds {
		scores = append(scores, p.walk(step, seed, playing)...)
	}
	return scores
}

func (p protocol) walk(step, seed int, playing []contender) []score {
	r := rand.New(rand.NewPCG(uint64(seed)+1, uint64(step))) //nolint:gosec // the same ones each time
	scores := make([]score, len(playing))
	owners := make([]placement.Owners, len(playing))
	in := packing.Input{Speeds: make([]float64, p.partitions), Capacity: fastest}
	part := 1 / float64(p.measurements)
	for i := range p.measurements {
		advance(r, in.Speeds, step, i == 0)
		bound := packing.LowerBound(in)
		pods := make([]int, len(playing))
		fewest := p.partitions
		for j, c := range playing {
			in.Owners = owners[j]
			packed := c.pack(in)
			scores[j].moved += packing.Moved(in.Speeds, in.Owners, packed.Owners) / in.Capacity * part
			owners[j], pods[j] = packed.Owners, packed.Pods
			fewest = min(fewest, pods[j])
		}
		for j, n := range pods {
			scores[j].pods += float64(n) * part
			scores[j].overBound += (float64(n)/float64(bound) - 1) * part
			scores[j].overFewest += (float64(n)/float64(fewest) - 1) * part
		}
	}
	for j, c := range playing {
		scores[j].step, scores[j].seed, scores[j].name = step, seed, c.name
	}
	return scores
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

// meansOf returns the means over the seeds, in the same order.
func meansOf(scores []score) []score {
	type key struct {
		step int
		name string
	}
	var means []score
	at, counts := map[key]int{}, map[key]float64{}
	for _, s := range scores {
		counts[key{s.step, s.name}]++
	}
	for _, s := range scores {
		k := key{s.step, s.name}
		if _, ok := at[k]; !ok {
			at[k] = len(means)
			means = append(means, score{step: s.step, name: s.name})
		}
		m, n := &means[at[k]], counts[k]
		m.pods += s.pods / n
		m.overBound += s.overBound / n
		m.overFewest += s.overFewest / n
		m.moved += s.moved / n
	}
	return means
}
