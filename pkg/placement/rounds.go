package placement

import "slices"

// rounds finds, among the members with room, the one that has the fewest partitions below, with the lowest id if there are several. It goes up from level
// to level. In a round, each member that has as many as the level gets one. It then waits for the next round, with a number that is one larger. A member
// that turns out to have more, because it owned some, waits for the round of its number. Numbers only grow, so the rounds meet every member in the right
// order.
type rounds struct {
	below []int // of each member: how many partitions it has below the one that is dealt
	room  []int // of each member: how many it gets from now on
	level int
	now   []int32 // members still to meet in this round, in the order of ids
	then  []int32 // members that wait for the next round, in the order of ids
	later []list  // by number: members that wait for that round, in any order
	after []int32 // of each member: the next one in its list
	spare []int32 // memory for a round to come
}

// list is a chain of members. It is empty if first is none.
type list struct{ first, last int32 }

// newRounds returns the rounds of the members with room, and updates room. has are their numbers of partitions before.
func newRounds(has, room []int) *rounds {
	levels := 1
	r := &rounds{
		below: make([]int, len(room)), room: room, after: make([]int32, len(room)),
		then: make([]int32, 0, len(room)), spare: make([]int32, 0, len(room)),
	}
	for i, n := range room {
		if n > 0 {
			levels = max(levels, has[i]+n+1)
			r.spare = append(r.spare, int32(i))
		}
	}
	r.now = r.spare
	r.later = make([]list, levels)
	for i := range r.later {
		r.later[i].first = none
	}
	return r
}

// deal writes into owner who gets each of these consecutive partitions. There must be room for all of them.
func (r *rounds) deal(owner []int32) {
	for len(owner) > 0 {
		if len(r.now) == 0 {
			r.open()
			continue
		}
		some := r.take(min(len(r.now), len(owner)))
		n := r.repeats(some, len(owner))
		for range n {
			owner = owner[copy(owner, some):]
		}
		for _, i := range some {
			r.below[i] += n
			if r.room[i] -= n; r.room[i] > 0 {
				r.then = append(r.then, i)
			}
		}
		r.level += n - 1
	}
}

// take takes n members out of this round and returns those that have as many as the level. The others wait.
func (r *rounds) take(n int) []int32 {
	some := r.now[:0]
	for _, i := range r.now[:n] {
		if r.below[i] == r.level {
			some = append(some, i)
		} else {
			r.wait(i, r.below[i])
		}
	}
	r.now = r.now[n:]
	return some
}

// repeats returns in how many rounds, from this one on, only these members get one of the next n consecutive partitions.
func (r *rounds) repeats(some []int32, n int) int {
	if len(some) == 0 || len(r.now) > 0 || len(r.then) > 0 {
		return 1
	}
	rounds := n / len(some)
	for _, i := range some {
		rounds = min(rounds, r.room[i])
	}
	for k := 1; k < rounds; k++ {
		if r.later[r.level+k].first != none {
			return k
		}
	}
	return rounds
}

// wait makes a member wait for the round of its number, which is above the level.
func (r *rounds) wait(i int32, below int) {
	l := &r.later[below]
	if l.first == none {
		l.first = i
	} else {
		r.after[l.last] = i
	}
	l.last, r.after[i] = i, none
}

// open begins the next round.
func (r *rounds) open() {
	r.level++
	for i := r.later[r.level].first; i != none; i = r.after[i] {
		r.then = append(r.then, i)
	}
	if r.later[r.level].first != none {
		slices.Sort(r.then)
	}
	r.now, r.then, r.spare = r.then, r.spare[:0], r.then
}
