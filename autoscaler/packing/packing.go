package packing

import "github.com/idalloc/idalloc/pkg/placement"

// Input is all that a packing depends on.
type Input struct {
	// Speeds is the load of each partition, in units per second. Its length is the number of partitions. Negative values and NaN count as 0.
	Speeds []float64
	// Capacity is what one pod works off, in the same unit. It must be greater than 0. Otherwise every partition with a load is too large.
	Capacity float64
	// Margin is kept free for each partition: the sum of a pod's speeds, plus Margin times their number, must fit into Capacity.
	Margin float64
	// Owners is who owns what now. Partitions beyond Speeds do not count. If a partition has two owners, the lower id counts. A partition may have no owner.
	Owners placement.Owners
	// Min and Max limit the number of pods. Max 0 means no limit. If Min is above Max, Max counts.
	Min, Max int
}

// Packing is the result of Pack.
type Packing struct {
	// Owners lists the ids 0 to Pods-1, and assigns each partition to one of them.
	Owners placement.Owners
	// Pods is the number of pods.
	Pods int
	// Oversized are the partitions that no pod can work off, in ascending order. Each has its own pod, unless Max applies.
	Oversized []int
}
