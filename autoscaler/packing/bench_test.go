package packing

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// walked are inputs for n partitions: the first from nothing, the others after a step of up to 5 % of what a partition has at most.
func walked(n int, capacity float64) (fresh, step, halved Input) {
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
	step.Owners = Pack(fresh).Owners
	halved.Owners = step.Owners
	return fresh, step, halved
}

func BenchmarkPack(b *testing.B) {
	for _, size := range []struct {
		partitions int
		capacity   float64
	}{{200, 100}, {10_000, 100}, {10_000, 2000}} {
		fresh, step, halved := walked(size.partitions, size.capacity)
		for _, c := range []struct {
			what string
			in   Input
		}{{"fresh", fresh}, {"step", step}, {"halved", halved}} {
			b.Run(fmt.Sprintf("%d of %g/%s", size.partitions, size.capacity, c.what), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Pack(c.in)
				}
			})
		}
	}
}
