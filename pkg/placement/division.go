package placement

import "slices"

// none is the index of no member.
const none = -1

// division is a target under construction. Members are known by their index in ids.
type division struct {
	ids   []int   // ascending
	owner []int32 // of each partition: a member, or none
	has   []int   // of each member: how many partitions it has so far
}

func newDivision(in Input) *division {
	ids := in.members()
	d := &division{ids: ids, owner: make([]int32, max(in.Partitions, 0)), has: make([]int, len(ids))}
	for p := range d.owner {
		d.owner[p] = none
	}
	return d
}

// owned returns how many of the partitions each member owns.
func (d *division) owned(o Owners) []int {
	counts := make([]int, len(d.ids))
	all := Between(0, len(d.owner)-1)
	for i, id := range d.ids {
		s := o[id]
		if n := len(s.spans); n > 0 && int(s.spans[n-1].last) >= len(d.owner) {
			s = s.Intersect(all)
		}
		counts[i] = s.Len()
	}
	return counts
}

// give gives the lowest partitions of s to the member i, at most most of them. Partitions that a member has already stay there.
func (d *division) give(i int, s Set, most int) {
	for _, r := range s.spans {
		first := int(r.first)
		last := min(int(r.last), len(d.owner)-1, first+most-1)
		for p := first; p <= last; p++ {
			if d.owner[p] == none {
				d.owner[p] = int32(i) //nolint:gosec // an index of ids, which are int32
				d.has[i]++
			}
		}
		most -= max(0, last-first+1)
	}
}

// place gives away the partitions that no member has. It goes through all partitions in ascending order, and knows for each member how many are below. That
// number, the room of the members, and the order of ids decide. A partition on the way to its target changes none of this: once it is there, it still
// counts below the later ones, and it takes no room from other members.
func (d *division) place() {
	if len(d.ids) == 0 {
		return
	}
	free := len(d.owner)
	for _, n := range d.has {
		free -= n
	}
	room := fill(d.has, free)
	rounds := newRounds(d.has, room)
	for i, n := range room {
		d.has[i] += n
	}
	for p := 0; p < len(d.owner); {
		if i := d.owner[p]; i != none {
			rounds.below[i]++
			p++
			continue
		}
		end := p + 1
		for end < len(d.owner) && d.owner[end] == none {
			end++
		}
		rounds.deal(d.owner[p:end])
		p = end
	}
}

// fill returns how many more partitions each member gets if free ones go, one by one, to a member with the fewest, and the last ones, too few for all of
// these members, to the lowest ids among them. has is how many each member has before.
func fill(has []int, free int) []int {
	sorted := slices.Sorted(slices.Values(has))
	total := free // what the members that get some have together in the end
	for _, n := range sorted {
		total += n
	}
	getting := len(sorted)
	for ; sorted[getting-1]*getting > total; getting-- {
		total -= sorted[getting-1]
	}
	level, rest := total/getting, total%getting
	room := make([]int, len(has))
	for i, n := range has {
		if n > level {
			continue
		}
		room[i] = level - n
		if rest > 0 {
			room[i]++
			rest--
		}
	}
	return room
}

// owners returns the finished target.
func (d *division) owners() Owners {
	array, start := d.layout()
	end := slices.Clone(start)
	previous := int32(none)
	for p, i := range d.owner {
		if i == previous {
			continue
		}
		if previous != none {
			array[end[previous]-1].last = spanOf(0, p-1).last
		}
		if i != none {
			array[end[i]] = spanOf(p, p)
			end[i]++
		}
		previous = i
	}
	if previous != none {
		array[end[previous]-1].last = spanOf(0, len(d.owner)-1).last
	}
	o := make(Owners, len(d.ids))
	for i, id := range d.ids {
		o[id] = Set{count: d.has[i]}
		if start[i] < end[i] {
			o[id] = Set{spans: array[start[i]:end[i]:end[i]], count: d.has[i]}
		}
	}
	return o
}

// layout returns one array for the spans of all members, and where in it those of each member start.
func (d *division) layout() (array []span, start []int) {
	start = make([]int, len(d.ids))
	previous := int32(none)
	for _, i := range d.owner {
		if i != previous && i != none {
			start[i]++
		}
		previous = i
	}
	total := 0
	for i, n := range start {
		start[i] = total
		total += n
	}
	return make([]span, total), start
}
