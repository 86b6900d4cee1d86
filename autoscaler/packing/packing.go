package packing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/idalloc/idalloc/pkg/placement"
)

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
	// Min and Max are the bounds of the number of pods. Max 0 is none. Max wins where Min is above it. The algorithms other than Pack
	// do not know Max.
	Min, Max int
	// Gaps says that ids may be left out, because any pod can be ended and not only those with the highest ids. The published
	// algorithms were measured that way. Pack does not need it and does not know it.
	Gaps bool
}

// Packing is what should be.
type Packing struct {
	// Owners lists the ids 0 to Pods-1, and gives each partition to one of them. With Input.Gaps it lists as many ids, not all below Pods.
	Owners placement.Owners
	// Pods is the number of pods.
	Pods int
	// Oversized are the partitions that no pod can work off, in ascending order. Each has a pod of its own, unless Max binds.
	Oversized []int
}

// Algorithm packs. It is pure: the same input gives the same packing in every process.
type Algorithm func(Input) Packing

// The names of the algorithms.
const (
	NamePack                 = "pack"
	NameFirstFit             = "first-fit"
	NameBestFit              = "best-fit"
	NameWorstFit             = "worst-fit"
	NameFirstFitDecreasing   = "first-fit-decreasing"
	NameBestFitDecreasing    = "best-fit-decreasing"
	NameWorstFitDecreasing   = "worst-fit-decreasing"
	NameModifiedBestFit      = "modified-best-fit"
	NameModifiedWorstFit     = "modified-worst-fit"
	NameModifiedBestFitP     = "modified-best-fit-partition"
	NameModifiedWorstFitP    = "modified-worst-fit-partition"
	NamePopBestFitDecreasing = "pop-best-fit-decreasing"
)

// ErrUnknownAlgorithm means that no algorithm has this name here.
var ErrUnknownAlgorithm = errors.New("idalloc: unknown packing algorithm")

// Named returns the algorithm with this name, or an error that wraps ErrUnknownAlgorithm.
func Named(name string) (Algorithm, error) {
	for _, a := range algorithms() {
		if a.name == name {
			return a.pack, nil
		}
	}
	return nil, fmt.Errorf("%w %q: use one of %s", ErrUnknownAlgorithm, name, strings.Join(Names(), ", "))
}

// Names returns the names that Named knows.
func Names() []string {
	all := algorithms()
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.name
	}
	return names
}

type named struct {
	name string
	pack Algorithm
}

func algorithms() []named {
	return []named{
		{NamePack, Pack},
		{NameFirstFit, FirstFit},
		{NameBestFit, BestFit},
		{NameWorstFit, WorstFit},
		{NameFirstFitDecreasing, FirstFitDecreasing},
		{NameBestFitDecreasing, BestFitDecreasing},
		{NameWorstFitDecreasing, WorstFitDecreasing},
		{NameModifiedBestFit, ModifiedBestFit},
		{NameModifiedWorstFit, ModifiedWorstFit},
		{NameModifiedBestFitP, ModifiedBestFitP},
		{NameModifiedWorstFitP, ModifiedWorstFitP},
		{NamePopBestFitDecreasing, PopBestFitDecreasing},
	}
}
