package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// holder returns the pod that has an id, empty if none.
func (f frame) holder(id int) string {
	for pod, held := range f.holders {
		if held == id {
			return pod
		}
	}
	return ""
}

// shows says whether one of the pods is there.
func (f frame) shows(pods []string) bool {
	return slices.ContainsFunc(f.rows, func(r row) bool { return slices.Contains(pods, r.pod) })
}

// changes says in words how the holders of after came from those of before.
func changes(before, after frame) string {
	var kept, fresh []int
	var moved []string
	for _, pod := range slices.SortedFunc(maps.Keys(after.holders), func(a, b string) int { return after.holders[a] - after.holders[b] }) {
		id := after.holders[pod]
		was, known := before.holders[pod]
		switch {
		case !known:
			fresh = append(fresh, id)
		case was == id:
			kept = append(kept, id)
		default:
			moved = append(moved, fmt.Sprintf("%d to %d", was, id))
		}
	}
	var parts []string
	if len(fresh) > 0 && len(before.holders) == 0 {
		parts = append(parts, fmt.Sprintf("%d pods have %s", len(fresh), ids(fresh)))
	} else if len(fresh) > 0 {
		parts = append(parts, "new pods have "+ids(fresh))
	}
	if len(moved) > 0 {
		parts = append(parts, "survivors moved from "+strings.Join(moved, " and from "))
	}
	switch {
	case len(kept) == 1:
		parts = append(parts, fmt.Sprintf("the pod with id %d kept it", kept[0]))
	case len(kept) > 1:
		parts = append(parts, fmt.Sprintf("the pods with %s kept them", ids(kept)))
	case len(before.holders) > 0:
		parts = append(parts, "no id stayed where it was")
	}
	return strings.Join(parts, ", ")
}

// ids says "id 3", or "ids 0, 2 and 3", or "ids 0 to 4".
func ids(all []int) string {
	slices.Sort(all)
	last := len(all) - 1
	if last == 0 {
		return fmt.Sprintf("id %d", all[0])
	}
	if last > 1 && all[last]-all[0] == last {
		return fmt.Sprintf("ids %d to %d", all[0], all[last])
	}
	var words []string
	for _, id := range all[:last] {
		words = append(words, strconv.Itoa(id))
	}
	return fmt.Sprintf("ids %s and %d", strings.Join(words, ", "), all[last])
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	default:
		return fmt.Sprintf("%d times", n)
	}
}
