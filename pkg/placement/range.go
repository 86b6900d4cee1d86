package placement

// Range is one of Count ids, with the number of partitions that are divided by id and count alone.
type Range struct{ ID, Count, Partitions int }

// Set returns the partitions of the id. With a = min(Count, Partitions), each id below a has Partitions/a of them in one run, and id a-1 also has the
// remainder. Ids at or above a have none.
//
// It is for programs that know only their id and the count, such as those that read the published files. Nothing is exclusive while the count changes: for
// a moment one instance uses the new count and another one the old, and both work on one partition. Their tokens do not tell which of them is right. Let
// idalloc own the partitions if that does harm.
func (r Range) Set() Set {
	id, partitions, assignable := r.ID, r.Partitions, min(r.Count, r.Partitions)
	if id < 0 || id >= assignable {
		return Set{}
	}
	share := partitions / assignable
	first, last := id*share, (id+1)*share-1
	if id == assignable-1 {
		last = partitions - 1
	}
	return Between(first, last)
}

// ByRange is the strategy range: the i-th of k members gets what [Range] gives to id i of k.
func ByRange(in Input) Owners {
	ids := in.members()
	o := make(Owners, len(ids))
	for i, id := range ids {
		o[id] = Range{ID: i, Count: len(ids), Partitions: in.Partitions}.Set()
	}
	return o
}

// Even is the strategy even: each member has one run of partitions. If the number of partitions is no multiple of the number of members, the first members
// have one more. RocketMQ calls this averagely (AllocateMessageQueueAveragely).
func Even(in Input) Owners {
	ids := in.members()
	o := make(Owners, len(ids))
	for i, id := range ids {
		share, more := in.Partitions/len(ids), in.Partitions%len(ids)
		first := i*share + min(i, more)
		if i < more {
			share++
		}
		o[id] = Between(first, first+share-1)
	}
	return o
}

// Primary is the strategy primary. The primary of a partition is the id below Count that has it by [Range]. While that id is not a member, the next member
// after it owns the partition. The lowest id follows the highest.
func Primary(in Input) Owners {
	ids := in.members()
	o := make(Owners, len(ids))
	for _, id := range ids {
		o[id] = Set{}
	}
	if len(ids) == 0 {
		return o
	}
	shares := make([][]span, len(ids))
	next := 0 // the first of ids that is at or after the primary
	for primary := range min(in.Count, in.Partitions) {
		for next < len(ids) && ids[next] < primary {
			next++
		}
		i := next % len(ids)
		shares[i] = append(shares[i], Range{ID: primary, Count: in.Count, Partitions: in.Partitions}.Set().spans...)
	}
	for i, id := range ids {
		o[id] = newSet(merged(shares[i]))
	}
	return o
}
