package main

import (
	"strconv"
	"time"

	"github.com/idalloc/idalloc/test/bench/table"
)

// row returns the cells of a result.
func row(r result) []string {
	all := time.Duration(0)
	for _, long := range append(r.moved, r.stayed...) {
		all += long
	}
	median, longest := seconds(r.moved)
	_, rested := seconds(r.stayed)
	return []string{
		r.name, r.limits, r.scene, strconv.Itoa(len(r.moved)), median, longest, strconv.Itoa(len(r.stayed)), rested,
		table.Decimals(all.Seconds(), 1), strconv.Itoa(r.most),
	}
}

// seconds returns the median and the longest of sorted times.
func seconds(times []time.Duration) (median, longest string) {
	if len(times) == 0 {
		return "–", "–"
	}
	return table.Decimals(times[len(times)/2].Seconds(), 2), table.Decimals(times[len(times)-1].Seconds(), 2)
}

func rows(results []result) [][]string {
	lines := make([][]string, 1, 1+len(results))
	lines[0] = []string{
		"contender", "by default", "scene", "moved", "idle p50 s", "idle max s", "stayed but rested", "rested max s", "idle in all s", "most of one member",
	}
	for _, r := range results {
		lines = append(lines, row(r))
	}
	return lines
}
