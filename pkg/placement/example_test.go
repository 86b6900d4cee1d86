package placement_test

import (
	"fmt"
	"slices"

	"github.com/idalloc/idalloc/pkg/placement"
)

// A strategy of a program's own gives all partitions to the lowest id. Pass it in idalloc.Options.Strategies, and write its name to
// idalloc.dev/partition-strategy.
func ExampleStrategy() {
	lowest := func(in placement.Input) placement.Owners {
		target := placement.Owners{}
		for _, id := range in.Members {
			target[id] = placement.Set{}
		}
		if len(in.Members) > 0 && in.Partitions > 0 {
			target[slices.Min(in.Members)] = placement.Between(0, in.Partitions-1)
		}
		return target
	}
	fmt.Println(lowest(placement.Input{Partitions: 8, Count: 3, Members: []int{2, 1}}))
	// Output: {"1":"0-7","2":""}
}

// A program that knows only its id and the count divides by them alone.
func ExampleRange() {
	for id := range 3 {
		fmt.Println(placement.Range{ID: id, Count: 3, Partitions: 64}.Set())
	}
	// Output:
	// 0-20
	// 21-41
	// 42-63
}
