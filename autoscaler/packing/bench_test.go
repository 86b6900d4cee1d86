package packing

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// walked are inputs for n partitions: the first from nothing, the others after a step of up to 5 % of what a partition has at most.
func walked(n int, capacity float64, a Algorithm) (fresh, step, halved Input) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same ones each time
	fresh = Input{Speeds: make([]float64, n), Capacity: capacity}
	step, halved = fresh, fresh
	step.Speeds, halved.Speeds = make([]float64, n), make([]float64, n)
	for p := range n {
		s := 100 * r.Float64()
		fresh.Speeds[p] = s
		step.Speeds[p] = min(max(s+10*r.Float64()-5, 0), 100)
		halved.Speeds[p] = s / 2
	}
	step.Owners = a(fresh).Owners
	halved.Owners = step.Owners
	return fresh, step, halved
}

func BenchmarkPack(b *testing.B) {
	for _, size := range []struct {
		partitions int
		capacity   float64
	}{{200, 100}, {10_000, 100}, {10_000, 2000}} {
		for _, name := range []string{NamePack, NameBestFitDecreasing, NameModifiedWorstFit} {
			a, err := Named(name)
			if err != nil {
				b.Fatal(err)
			}
			fresh, step, halved := walked(size.partitions, size.capacity, a)
			for _, c := range []struct {
				what string
				in   Input
			}{{"fresh", fresh}, {"step", step}, {"halved", halved}} {
				b.Run(fmt.Sprintf("%d of %g/%s/%s", size.partitions, size.capacity, c.what, name), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						a(c.in)
					}
				})
			}
		}
	}
}
