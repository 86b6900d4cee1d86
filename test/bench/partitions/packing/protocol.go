package main

import (
	"math/rand/v2"

	"github.com/idalloc/idalloc/autoscaler/packing"
	"github.com/idalloc/idalloc/pkg/placement"
)

// fastest is the highest speed of a partition. Speeds are whole numbers up to it, as in the paper's generator.
const fastest = 100

// steps are the largest changes of a speed from one measurement to the next.
func steps() []int { return []int{0, 5, 10, 15, 20, 25} }

// protocol is how much is played, and how many of the fastest partitions a pod can work off. In the paper that is one.
type protocol struct{ partitions, measurements, seeds, hold int }

// contender is an algorithm. The published ones may leave ids out, as in the paper, where any consumer can be ended.
type contender struct {
	name string
	pack packing.Algorithm
	gaps bool
}

func contenders() []contender {
	names := packing.Names()
	all := make([]contender, 0, len(names))
	for _, name := range names {
		pack, err := packing.Named(name)
		if err != nil {
			panic(err) // it named it itself
		}
		all = append(all, contender{name: name, pack: pack, gaps: name != packing.NamePack})
	}
	return all
}

// score is what an algorithm needed and moved, as a mean over the measurements.
type score struct {
	step, seed int
	name       string
	pods       float64
	overBound  float64 // pods above the lower bound, as a part of it
	overFewest float64 // the same above the fewest pods of all algorithms: the paper's cardinal bin score
	moved      float64 // what moved, in capacities: the paper's R
	compact    float64 // the same if only the pods with the highest ids can be ended
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
	owners, compact := make([]placement.Owners, len(playing)), make([]placement.Owners, len(playing))
	in := packing.Input{Speeds: make([]float64, p.partitions), Capacity: float64(p.hold * fastest)}
	part := 1 / float64(p.measurements)
	for i := range p.measurements {
		advance(r, in.Speeds, step, i == 0)
		bound := packing.LowerBound(in)
		pods := make([]int, len(playing))
		fewest := p.partitions
		for j, c := range playing {
			in.Owners, in.Gaps = owners[j], c.gaps
			packed := c.pack(in)
			moved := packing.Moved(in.Speeds, in.Owners, packed.Owners) / in.Capacity
			owners[j], pods[j] = packed.Owners, packed.Pods
			scores[j].moved += moved * part
			if in.Gaps = false; c.gaps {
				in.Owners = compact[j]
				packed = c.pack(in)
				moved = packing.Moved(in.Speeds, in.Owners, packed.Owners) / in.Capacity
				compact[j] = packed.Owners
			}
			scores[j].compact += moved * part
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
		m.compact += s.compact / n
	}
	return means
}
