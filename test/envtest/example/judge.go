package example

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/overlap"
)

// Missing returns how many of the events that were sent have not been processed. sent says how many events each order has.
func Missing(sent map[string]int, byOrder map[string][]Processed) int {
	n := 0
	for order, last := range sent {
		numbers := map[int]struct{}{}
		for _, e := range byOrder[order] {
			numbers[e.Number] = struct{}{}
		}
		n += last - len(numbers)
	}
	return n
}

// Disorder returns what is wrong with the order in which events were processed: each order's must be, the first time, in the order
// of their numbers and without a gap, one after the other, and only an event of which a pod says that it may have been processed may be
// processed again. repeats is how many were.
func Disorder(byOrder map[string][]Processed) (wrong []string, repeats int) {
	for _, order := range slices.Sorted(maps.Keys(byOrder)) {
		last, end := 0, int64(0)
		for _, e := range byOrder[order] {
			switch {
			case e.Number > last+1:
				wrong = append(wrong, fmt.Sprintf("%s: event %d was processed after event %d", order, e.Number, last))
			case e.Begin < end:
				wrong = append(wrong, fmt.Sprintf("%s: event %d was begun before the one before it was done", order, e.Number))
			case e.Number <= last && !e.Again:
				wrong = append(wrong, fmt.Sprintf("%s: event %d was processed again, and no pod said that it would be", order, e.Number))
			}
			if e.Number <= last {
				repeats++
			}
			last, end = max(last, e.Number), max(end, e.End)
		}
	}
	return wrong, repeats
}

// Absence returns for how long all partitions together were idle, between the first and the last time that a pod worked on each, and how often a
// partition went from one pod to another.
func Absence(records []overlap.Record) (total time.Duration, moves int) {
	for _, g := range Gaps(records) {
		total += time.Duration(g.To - g.From)
		if g.Moved {
			moves++
		}
	}
	return total, moves
}

// Gap is a time, by overlap.Now, in which no pod worked on a partition, between two pods or two pieces of work of one pod. It is empty if
// the next one began at once.
type Gap struct {
	Partition int
	From, To  int64
	// Moved: another pod worked on it afterwards.
	Moved bool
}

// Gaps returns the gaps between the first and the last time at which each partition was worked on.
func Gaps(records []overlap.Record) []Gap {
	var gaps []Gap
	byPartition := map[int][]span{}
	for _, s := range spans(records) {
		byPartition[s.partition] = append(byPartition[s.partition], s)
	}
	for partition, all := range byPartition {
		slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		end := all[0].to
		for i, s := range all[1:] {
			gaps = append(gaps, Gap{Partition: partition, From: min(end, s.from), To: s.from, Moved: s.pod != all[i].pod})
			end = max(end, s.to)
		}
	}
	return gaps
}

// span is a time in which one pod worked on a partition.
type span struct {
	partition int
	pod       string
	token     int64
	from, to  int64
}

// spans returns the times in which partitions were worked on. The records of one log must be in their order.
func spans(records []overlap.Record) []span {
	var all []span
	open := map[string]int{} // by log, where its span is
	for _, r := range records {
		i, is := open[r.Holder()]
		switch {
		case r.ID == overlap.None:
			delete(open, r.Holder())
		case is && all[i].token == r.Token:
			all[i].to = r.Before
		default:
			open[r.Holder()] = len(all)
			all = append(all, span{partition: r.ID, pod: strings.TrimSuffix(r.Pod, fmt.Sprintf(".%d", r.ID)) + r.UID, token: r.Token, from: r.After, to: r.Before})
		}
	}
	return all
}
