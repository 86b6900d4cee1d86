package example

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

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

// Judge waits until all that was sent is processed, and judges what the consumers wrote down in a directory.
func Judge(ctx context.Context, tb testing.TB, dir string, sent map[string]int) {
	tb.Helper()
	var byOrder map[string][]Processed
	err := wait.PollUntilContextCancel(ctx, look, true, func(context.Context) (done bool, err error) {
		byOrder, err = ReadProcessed(dir)
		return Missing(sent, byOrder) == 0, err
	})
	if err != nil {
		tb.Fatalf("every event is processed: %v", err)
	}
	wrong, repeats := Disorder(byOrder)
	for _, sentence := range wrong[:min(len(wrong), 10)] {
		tb.Error(sentence)
	}
	records, err := overlap.Read(dir)
	if err != nil {
		tb.Fatal(err)
	}
	report, err := overlap.Check(records)
	if err != nil {
		tb.Error(err)
	}
	absence, moves := Absence(records)
	events := 0
	for _, last := range sent {
		events += last
	}
	tb.Logf("%d events of %d orders, %d processed again, %d moves, %s without a consumer, all together\n%v", events, len(sent), repeats, moves, absence, report)
}

// Absence returns for how long all partitions together were idle, between the first and the last time that a pod worked on each, and how often a
// partition went from one pod to another.
func Absence(records []overlap.Record) (total time.Duration, moves int) {
	byPartition := map[int][]overlap.Run{}
	for _, r := range overlap.Runs(records) {
		byPartition[r.ID] = append(byPartition[r.ID], r)
	}
	for _, all := range byPartition {
		slices.SortFunc(all, func(a, b overlap.Run) int { return cmp.Compare(a.Start, b.Start) })
		end := all[0].End
		for i, r := range all[1:] {
			total += time.Duration(max(0, r.Start-end))
			if r.Pod != all[i].Pod { // each log is of one pod and one partition
				moves++
			}
			end = max(end, r.End)
		}
	}
	return total, moves
}
