package conformance

import (
	"slices"
	"strings"
)

// Slots are named OWNER/ID and partitions OWNER#NUMBER. OWNER#* means every partition of the owner.
const partitionMark, star = "#", "*"

// every returns the name for all partitions of the thing's owner. It is empty if the thing is a slot.
func every(x string) string {
	owner, _, partition := strings.Cut(x, partitionMark)
	if !partition {
		return ""
	}
	return owner + partitionMark + star
}

// has reports whether a list locks the thing.
func has(list []string, x string) bool {
	if slices.Contains(list, x) {
		return true
	}
	all := every(x)
	return all != "" && slices.Contains(list, all)
}

func subset(some, of []string) bool {
	return !slices.ContainsFunc(some, func(x string) bool { return !has(of, x) })
}

// without removes a pod from the pods of thing x.
func without(in map[string][]*pod, x string, p *pod) {
	if in[x] = slices.DeleteFunc(in[x], func(q *pod) bool { return q == p }); len(in[x]) == 0 {
		delete(in, x)
	}
}
