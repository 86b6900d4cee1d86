package packing

import "github.com/idalloc/idalloc/pkg/placement"

// Input is everything that a packing depends on.
type Input struct {
	// Speeds is the load of each partition, in units per second. Its length is the number of partitions. The caller has cleaned it: what is
	// negative or no number counts as 0.
	Speeds []float64
	// Capacity is what one pod works off, in the same unit. It must be greater than 0. Otherwise each partition with a load is too large.
	Capacity float64
	// Margin is kept free for each partition: the sum of a pod's speeds, plus Margin times their number, must fit into Capacity.
	Margin float64
	// Owners is who owns what now. Partitions beyond Speeds do not count. Where it names two owners of one partition, the lower id counts.
	// A partition may have no owner.
	Owners placement.Owners
	// Min and Max are the bounds of the number of pods. Max 0 is none. Max wins where Min is above it.
	Min, Max int
}

// Packing is what should be.
type Packing struct {
	// Owners lists the ids 0 to Pods-1, and gives each partition to one of them.
	Owners placement.Owners
	// Pods is the number of pods.
	Pods int
	// Oversized are the partitions that no pod can work off, in ascending order. Each has a pod of its own, unless Max binds.
	Oversized []int
}
