package main

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/idalloc/idalloc/autoscaler/packing"
)

// duration is how long one packing took.
type duration struct {
	partitions, pods int
	change, name     string
	moved            float64
	took             time.Duration // the shortest of some rounds
}

// race measures how long many partitions take: in pods for two of them, and in pods for forty.
func race(partitions int) []duration {
	running := chosen(ours, bestFitDecreasing, modifiedWorstFit)
	times := make([]duration, 0, 2*4*len(running))
	for _, each := range []float64{fastest, 20 * fastest} {
		for _, c := range running {
			times = append(times, changes(partitions, each, c)...)
		}
	}
	return times
}

// changes measures an algorithm at a first start, after a small step of all speeds, and after loads have doubled and halved.
func changes(partitions int, each float64, c contender) []duration {
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same ones each time
	in := packing.Input{Speeds: make([]float64, partitions), Capacity: each}
	var times []duration
	measure := func(change string) {
		d := duration{partitions: partitions, change: change, name: c.name}
		var packed packing.Packing
		for i := range 30 {
			runtime.GC()
			start := time.Now()
			packed = c.pack(in, false)
			if took := time.Since(start); i == 0 || took < d.took {
				d.took = took
			}
		}
		d.pods, d.moved = packed.Pods, packing.Moved(in.Speeds, in.Owners, packed.Owners)/each
		in.Owners = packed.Owners
		times = append(times, d)
	}
	advance(r, in.Speeds, 0, true)
	measure("first start")
	advance(r, in.Speeds, 5, false)
	measure("a step of up to 5 %")
	for _, change := range []struct {
		name  string
		times float64
	}{{"doubled", 2}, {"halved", 0.5}} {
		for p := range in.Speeds {
			in.Speeds[p] *= change.times
		}
		measure(change.name)
	}
	return times
}
