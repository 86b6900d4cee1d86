package partition

import "slices"

// rounds finds the member with room that has the fewest partitions below, the lowest id of several. Members stand in lists by a
// number of partitions that may be out of date. It can only be too small, because the numbers only grow. So one pass over the lists
// from the lowest number on meets all members in the right order: who has more by now goes into a later list.
type rounds struct {
	lists  []list  // by number of partitions below
	after  []int32 // of each member: the next one in its list
	level  int     // of the pass that is under way
	round  []int32 // the members of that list that were not met yet, in the order of their ids
	buffer []int32 // the memory of round
}

// list is a chain of members. It is empty if first is none.
type list struct{ first, last int32 }

// newRounds returns the rounds of the members with room. A member that has many partitions gets at most room more.
func newRounds(has, room []int) *rounds {
	most := 0
	for i, n := range room {
		if n > 0 {
			most = max(most, has[i]+n)
		}
	}
	r := &rounds{lists: make([]list, most+1), after: make([]int32, len(room))}
	for i := range r.lists {
		r.lists[i].first = none
	}
	for i, n := range room {
		if n > 0 {
			r.buffer = append(r.buffer, int32(i))
		}
	}
	r.round = r.buffer
	return r
}

// next returns the member that gets a partition now. There must be one with room. add brings it back if it has room for more.
func (r *rounds) next(below []int) int32 {
	for {
		for len(r.round) == 0 {
			r.open()
		}
		i := r.round[0]
		r.round = r.round[1:]
		if below[i] == r.level {
			return i
		}
		r.add(i, below[i])
	}
}

// open begins the next pass.
func (r *rounds) open() {
	r.level++
	r.buffer = r.buffer[:0]
	for i := r.lists[r.level].first; i != none; i = r.after[i] {
		r.buffer = append(r.buffer, i)
	}
	if !slices.IsSorted(r.buffer) { // its members come from several lists
		slices.Sort(r.buffer)
	}
	r.round = r.buffer
}

// add puts a member at the end of the list of this number, which is above the level.
func (r *rounds) add(i int32, below int) {
	l := &r.lists[below]
	if l.first == none {
		l.first = i
	} else {
		r.after[l.last] = i
	}
	l.last, r.after[i] = i, none
}
