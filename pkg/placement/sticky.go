package placement

// Sticky is the strategy sticky. The counts of the members differ by at most one, and no other target with such counts moves
// fewer partitions.
func Sticky(in Input) Owners {
	d := newDivision(in)
	keep := quotas(d.owned(in.Owners), in.Partitions)
	for i, id := range d.ids {
		d.give(i, in.Owners[id], keep[i])
	}
	d.place()
	return d.owners()
}

// External is the strategy external. A partition whose target is a member goes there. Any other stays with its owner. The rest is placed as by Sticky, such
// that the smallest number of partitions of a member is as large as possible.
func External(in Input) Owners {
	d := newDivision(in)
	for i, id := range d.ids {
		d.give(i, in.Target[id], len(d.owner))
	}
	for i, id := range d.ids {
		d.give(i, in.Owners[id], len(d.owner))
	}
	d.place()
	return d.owners()
}

// quotas returns how many partitions each member has at balance. counts are their present numbers, in the order of the ids. The larger shares go first to
// members that already have as many, then to the lowest ids. How many partitions the latter have does not matter: otherwise the quotas would change while
// they get more.
func quotas(counts []int, partitions int) []int {
	q := make([]int, len(counts))
	if len(q) == 0 {
		return q
	}
	share, larger := partitions/len(q), partitions%len(q)
	for _, first := range []bool{true, false} {
		for i, n := range counts {
			if has := n > share; has != first {
				continue
			}
			q[i] = share
			if larger > 0 {
				q[i]++
				larger--
			}
		}
	}
	return q
}
