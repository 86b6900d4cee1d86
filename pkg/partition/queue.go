package partition

// queue is a binary heap of the members that have room, by the number of partitions below and then by id. A number may be
// out of date. It can only be too small, because numbers only grow. So the first entry whose number is right is the lowest of all.
type queue []entry

// entry is a number of partitions in the upper half and a member in the lower half, which makes one comparison of both.
type entry uint64

const memberBits = 32

func entryOf(below int, member int32) entry {
	return entry(below)<<memberBits | entry(member) //nolint:gosec // neither is negative
}

func (e entry) member() int32 { return int32(e & (1<<memberBits - 1)) } //nolint:gosec // the bits of an int32

// newQueue returns a queue of the members with room. No partition is below yet.
func newQueue(room []int) queue {
	var q queue
	for i, n := range room {
		if n > 0 {
			q = append(q, entryOf(0, int32(i)))
		}
	}
	return q // in ascending order, and so a heap
}

// lowest returns the member with room that has the fewest below, the lowest id of several.
func (q queue) lowest(below []int) int32 {
	for {
		i := q[0].member()
		now := entryOf(below[i], i)
		if now == q[0] {
			return i
		}
		q[0] = now
		q.sink()
	}
}

// drop takes the first entry out.
func (q *queue) drop() {
	last := len(*q) - 1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.sink()
}

// sink moves the first entry down to its place.
func (q queue) sink() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(q) {
			return
		}
		if right := child + 1; right < len(q) && q[right] < q[child] {
			child = right
		}
		if q[i] <= q[child] {
			return
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}
