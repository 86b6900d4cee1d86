package main

import (
	"math/rand/v2"
	"slices"
)

// script says who the members are, at the start and after each step.
type script struct {
	name    string
	members [][]int
}

// upTo returns 0 to n-1.
func upTo(n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

// without returns the ids but one.
func without(ids []int, id int) []int {
	return slices.DeleteFunc(slices.Clone(ids), func(i int) bool { return i == id })
}

// scripts returns what happens to n members.
func scripts(n int) []script {
	all := upTo(n)
	return []script{
		{"one more", [][]int{all, upTo(n + 1)}},
		{"the last goes", [][]int{all, upTo(n - 1)}},
		{"the middle one fails", [][]int{all, without(all, n/2)}},
		{"half more", [][]int{all, upTo(n + n/2)}},
		{"half go", [][]int{all, upTo(n - n/2)}},
		{"restart, one by one", restart(all)},
		{"a thousand at random", atRandom(all)},
	}
}

// restart takes each member out, and puts it back before the next one goes. With idalloc a restart looks like this only if each pod
// is gone for longer than failover-after. Otherwise the next pod takes over the id, and no member changes.
func restart(all []int) [][]int {
	members := make([][]int, 1, 1+2*len(all))
	members[0] = all
	for _, id := range all {
		members = append(members, without(all, id), all)
	}
	return members
}

// atRandom has a thousand times a member leave or come, any id below twice their number.
func atRandom(all []int) [][]int {
	const steps = 1000
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same script each time
	members := make([][]int, 1, 1+steps)
	members[0] = all
	now := all
	for range steps {
		id := random.IntN(2 * len(all))
		if next := without(now, id); len(next) < len(now) && len(next) > 0 {
			now = next
		} else {
			now = slices.Sorted(slices.Values(append(next, id)))
		}
		members = append(members, now)
	}
	return members
}
