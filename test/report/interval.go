package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/overlap"
)

const (
	// A pod is quiet when it logs nothing for this many times its usual distance of samples, and at least
	// for shortestQuiet: it is suspended, or its node has no time for it.
	quietFactor   = 100
	shortestQuiet = 500 * time.Millisecond
)

// interval is a time in which a pod showed one id under one token. While it is quiet, it logged nothing,
// but went on with the same id and token afterwards.
type interval struct {
	pod      string
	id       int
	token    int64
	from, to int64
	quiet    bool
}

// clash is a time in which two pods showed one id.
type clash struct {
	id       int
	pods     [2]string
	from, to int64
}

// intervals merges the samples of all pods, those of one pod in their order, and sorts the result by begin.
func intervals(records []overlap.Record) []interval {
	byPod := map[string][]overlap.Record{}
	for _, r := range records {
		byPod[r.Holder()] = append(byPod[r.Holder()], r)
	}
	all := make([]interval, 0, len(byPod))
	for _, own := range byPod {
		all = append(all, merge(own, quietAfter(own))...)
	}
	slices.SortFunc(all, func(a, b interval) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.id, b.id), strings.Compare(a.pod, b.pod))
	})
	return all
}

// quietAfter returns the distance of samples from which on a pod counts as quiet, in nanoseconds.
func quietAfter(own []overlap.Record) int64 {
	distances := make([]int64, 0, len(own))
	for i := 1; i < len(own); i++ {
		distances = append(distances, own[i].Before-own[i-1].Before)
	}
	if len(distances) == 0 {
		return int64(shortestQuiet)
	}
	slices.Sort(distances)
	return max(int64(shortestQuiet), quietFactor*distances[len(distances)/2])
}

func merge(own []overlap.Record, quiet int64) []interval {
	var all []interval
	open := false
	for _, r := range own {
		if r.ID == overlap.None {
			open = false
			continue
		}
		last := len(all) - 1
		goesOn := open && all[last].id == r.ID && all[last].token == r.Token
		if goesOn && r.Before-all[last].to <= quiet {
			all[last].to = max(all[last].to, r.Before)
			continue
		}
		next := interval{pod: r.Holder(), id: r.ID, token: r.Token, from: r.After, to: max(r.After, r.Before)}
		if goesOn {
			silence := next
			silence.from, silence.to, silence.quiet = all[last].to, r.Before, true
			next.from = r.Before
			all = append(all, silence)
		}
		all = append(all, next)
		open = true
	}
	return all
}

// clashes finds what two pods showed at once. all is sorted by begin.
func clashes(all []interval) []clash {
	var found []clash
	byID := map[int][]interval{}
	for _, i := range all {
		for _, earlier := range byID[i.id] {
			if earlier.pod != i.pod && earlier.to >= i.from {
				found = append(found, clash{i.id, [2]string{earlier.pod, i.pod}, i.from, min(earlier.to, i.to)})
			}
		}
		byID[i.id] = append(byID[i.id], i)
	}
	return found
}
