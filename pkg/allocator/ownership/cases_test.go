package ownership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// atRest is a workload of two pods that work on all that they own.
func atRest() Input {
	first, second := placement.Between(0, 1), placement.Between(2, 3)
	return Input{
		Count:  2,
		Before: &assignment.Partitions{Count: 4, Strategy: placement.NameRange, Owners: placement.Owners{0: first, 1: second}},
		Trust:  assignment.Clean, Clean: true,
		Wish:    assignment.Wish{HasCount: true, Count: 4, Strategy: placement.NameRange},
		Holders: map[int]Holder{0: {Works: true, Locks: first}, 1: {Works: true, Locks: second}},
		Vacant:  map[int]bool{}, Strategies: placement.Named,
	}
}

// absent makes a workload that has had no partitions until now.
func absent(in *Input) {
	in.Before, in.Trust, in.Clean = nil, assignment.Absent, false
	in.Holders = map[int]Holder{0: {Works: true}, 1: {Works: true}}
}

// leads makes a workload with the strategy primary, in which id 0 owns all.
func leads(in *Input) {
	all := placement.Between(0, 3)
	in.Wish.Strategy, in.Before.Strategy, in.Before.Owners = placement.NamePrimary, placement.NamePrimary, placement.Owners{0: all}
	in.Holders = map[int]Holder{0: {Works: true, Locks: all}, 1: {Works: true}}
}

// swaps asks for another division, of whose partitions the pods yield all but one.
func swaps(in *Input) {
	in.Wish.Strategy = placement.NameExternal
	in.Wish.Target = placement.Owners{0: placement.Between(2, 3), 1: placement.Of(0)}
	in.Holders = map[int]Holder{0: {Works: true, Locks: placement.Of(1), Yields: placement.Of(0)}, 1: {Works: true, Yields: placement.Between(2, 3)}}
}

// aloneAndPaused makes a workload of one pod that is paused and has yielded all that the row gives to its id.
func aloneAndPaused(in *Input) {
	all := placement.Between(0, 3)
	in.Count, in.Before.Owners = 1, placement.Owners{0: all}
	in.Holders = map[int]Holder{0: {Works: true, Yields: all, Paused: true}}
}

// own makes in use a strategy of the program's own, which gives to the ids what o says.
func own(in *Input, o placement.Owners) {
	in.Wish.Strategy = "mine"
	in.Strategies = func(name string) (placement.Strategy, error) {
		if name == "mine" {
			return func(placement.Input) placement.Owners { return o }, nil
		}
		return placement.Named(name)
	}
}

// said is a row in words.
func said(p *assignment.Partitions) string {
	if p == nil {
		return "none"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", p.Count, p.Strategy)
	for _, id := range p.Owners.IDs() {
		fmt.Fprintf(&b, " %d=%s", id, p.Owners[id])
	}
	if !p.Paused.Empty() {
		fmt.Fprintf(&b, " paused %s", p.Paused)
	}
	return b.String()
}

// asBefore is what a workload at rest has in force.
const asBefore = "4 range 0=0-1 1=2-3"

// The properties draw at random what these cases need together.
func TestPlansOfSmallWorkloads(t *testing.T) {
	for name, tc := range map[string]struct {
		alter      func(in *Input)
		want       string
		same       bool // nothing is written
		failedOver string
	}{
		"nothing to do": {func(*Input) {}, asBefore, true, ""},
		"another planner could not trust the row": {func(in *Input) { in.Renew = true }, asBefore, false, ""},

		// what is in force
		"the user removed the strategy": {func(in *Input) { in.Wish.Strategy = "" }, "4 sticky 0=0-1 1=2-3", false, ""},
		"the strategy became nonsense": {func(in *Input) {
			in.Wish.Strategy, in.Wish.Problems = "", []assignment.ProblemError{{Key: assignment.PartitionStrategyKey}}
		}, asBefore, true, ""},
		"the strategy is nonsense from the start": {func(in *Input) {
			absent(in)
			in.Wish.Strategy, in.Wish.Problems = "", []assignment.ProblemError{{Key: assignment.PartitionStrategyKey}}
		}, "4 sticky 0=0,2 1=1,3", false, ""},
		"the strategy of a later version became nonsense": {func(in *Input) {
			in.Before.Strategy = later
			in.Wish.Strategy, in.Wish.Problems = "", []assignment.ProblemError{{Key: assignment.PartitionStrategyKey}}
		}, "4 range-2 0=0-1 1=2-3", true, ""},
		"a strategy of a later version is wished, and more partitions": {func(in *Input) { in.Wish.Count, in.Wish.Strategy = 6, later }, "6 range 0=0-1 1=2-5", false, ""},

		// members
		"the pod of a paused id died a moment ago": {func(in *Input) {
			in.Before.Paused = placement.Of(1)
			delete(in.Holders, 1)
		}, "4 range 0=0-1 1=2-3 paused 1", true, ""},
		"the pod of a paused id died long ago": {func(in *Input) {
			in.Before.Paused, in.Vacant[1] = placement.Of(1), true
			delete(in.Holders, 1)
		}, "4 range 0=0-3", false, "1=2-3"},
		"a member that owned nothing died long ago": {func(in *Input) {
			leads(in)
			in.Before.Owners[1], in.Vacant[1] = placement.Set{}, true
			delete(in.Holders, 1)
		}, "4 primary 0=0-3", false, ""},
		"a member died long ago, and a pod knows no partitions": {func(in *Input) {
			in.Vacant[1], in.Holders[0] = true, Holder{Unaware: true}
			delete(in.Holders, 1)
		}, asBefore, true, ""},
		"a pod pauses, and another one knows no partitions": {func(in *Input) {
			in.Holders[0], in.Holders[1] = Holder{Unaware: true}, Holder{Works: true, Locks: placement.Between(2, 3), Paused: true}
		}, asBefore, true, ""},
		"partitions are nobody's, and a pod knows no partitions": {func(in *Input) {
			in.Before.Owners[1] = placement.Set{}
			in.Holders[0], in.Holders[1] = Holder{Unaware: true}, Holder{Works: true}
		}, "4 range 0=0-1 1=", true, ""},
		"a pod at the count is paused": {func(in *Input) {
			in.Count = 1
			in.Holders[1] = Holder{Works: true, Locks: placement.Between(2, 3), Paused: true}
		}, asBefore, true, ""},
		"a damaged map, and a pod is paused": {func(in *Input) {
			in.Trust, in.Clean = assignment.Foreign, false
			in.Holders[1] = Holder{Works: true, Locks: placement.Between(2, 3), Paused: true}
		}, "4 range 0=0-1 1=2-3 paused 1", false, ""},
		"the first members of primary": {func(in *Input) {
			absent(in)
			in.Wish.Strategy = placement.NamePrimary
		}, "4 primary 0=0-1 1=2-3", false, ""},
		"primary, and the planner has held its id for a moment": {func(in *Input) {
			leads(in)
			in.Me = 1
		}, "4 primary 0=0-3", true, ""},
		"primary, and the planner has held its id for long": {func(in *Input) {
			leads(in)
			in.Me, in.Joins = 1, true
		}, "4 primary 0=0-3 1=", false, ""},
		"primary, and another pod has not planned yet": {func(in *Input) {
			leads(in)
			in.Joins = true
		}, "4 primary 0=0-3", true, ""},
		"primary, and its only member died long ago": {func(in *Input) {
			leads(in)
			in.Me, in.Vacant[0] = 1, true
			delete(in.Holders, 0)
		}, "4 primary 1=0-3", false, "0=0-3"},

		// a lower count of partitions
		"fewer partitions, and the pod works":                      {func(in *Input) { in.Wish.Count = 3 }, "3 range 0=0-1 1=2-3", false, ""},
		"fewer partitions, and the pod knows none":                 {func(in *Input) { in.Wish.Count, in.Holders[1] = 3, Holder{Unaware: true} }, "3 range 0=0-1 1=2", false, ""},
		"fewer partitions, and the pod died":                       {func(in *Input) { in.Wish.Count = 3; delete(in.Holders, 1) }, "3 range 0=0-1 1=2", false, ""},
		"no partitions, and the pods have entries and no receipts": {func(in *Input) { in.Wish.Count, in.Holders = 0, map[int]Holder{0: {}, 1: {}} }, "0 range 0=0-1 1=2-3", false, ""},
		"fewer partitions, and the id of the pod is in quarantine": {func(in *Input) {
			in.Wish.Count, in.Quarantined = 3, func(id int) bool { return id == 1 }
			delete(in.Holders, 1)
		}, "3 range 0=0-1 1=2-3", false, ""},

		// what is nobody's
		"the row lost a partition that its pod works on": {func(in *Input) { in.Before.Owners[1] = placement.Of(3) }, asBefore, false, ""},
		"a partition of nobody goes to whom has fewer": {func(in *Input) {
			few, more := placement.Of(2), placement.Of(1, 3)
			in.Wish.Strategy, in.Before.Strategy, in.Before.Owners = placement.NameSticky, placement.NameSticky, placement.Owners{0: more, 1: few}
			in.Holders = map[int]Holder{0: {Works: true, Locks: more}, 1: {Works: true, Locks: few}}
		}, "4 sticky 0=1,3 1=0,2", false, ""},
		"a wipe, while a quarantine is not served": {func(in *Input) {
			absent(in)
			in.Unserved = true
		}, "4 range 0= 1=", false, ""},
		"a pod without a slot alone works on partitions": {func(in *Input) {
			absent(in)
			in.Holders, in.Strays = map[int]Holder{0: {}}, []placement.Set{placement.Between(0, 1)}
		}, "none", true, ""},
		"an own strategy names an id without a member": {func(in *Input) {
			absent(in)
			own(in, placement.Owners{0: placement.Between(0, 1), 5: placement.Between(2, 3)})
		}, "4 mine 0=0-1 1=", false, ""},
		"an own strategy names partitions that are not there": {func(in *Input) {
			absent(in)
			own(in, placement.Owners{0: placement.Between(0, 9)})
		}, "4 mine 0=0-3 1=", false, ""},

		// rule 8 and its exception
		"another division takes over": {swaps, "4 external 0=0-1 1=2-3", false, ""},
		"another division goes on": {func(in *Input) {
			swaps(in)
			in.Before.Strategy = placement.NameExternal
		}, "4 external 0=1-3 1=0", false, ""},
		"another division takes over from an unknown one": {func(in *Input) {
			swaps(in)
			in.Before.Strategy = later
		}, "4 external 0=0-1 1=2-3", false, ""},
		"the only pod pauses, and has yielded all": {aloneAndPaused, "4 range 0=0-3 paused 0", false, ""},
		"the only pod is paused by the row, too": {func(in *Input) {
			aloneAndPaused(in)
			in.Before.Paused = placement.Of(0)
		}, "4 range 0= paused 0", false, ""},
		"the pod has yielded what its id is to own on": {func(in *Input) {
			in.Holders[0] = Holder{Works: true, Yields: placement.Between(0, 1)}
		}, "4 range 0= 1=2-3", false, ""},
	} {
		in := atRest()
		tc.alter(&in)
		d := Plan(in)
		failedOver := make([]string, 0, len(d.FailedOver))
		for _, c := range d.FailedOver {
			failedOver = append(failedOver, fmt.Sprintf("%d=%s", c.ID, c.Set))
		}
		if got := said(d.Next); got != tc.want || d.Changed == tc.same || strings.Join(failedOver, " ") != tc.failedOver {
			t.Errorf("%s: %s, written %t, failed over %q; want %s, written %t, failed over %q", name, got, d.Changed, failedOver, tc.want, !tc.same, tc.failedOver)
		}
	}
}

func TestAPausedProcessStopsAll(t *testing.T) {
	in := atRest()
	v := View{Count: in.Count, Row: in.Before, Clean: true, ID: 1, Paused: true, Strategies: placement.Named}
	all := placement.Between(2, 3)
	if d := DutiesAt(v, all, all, placement.Set{}, false); !d.Stop.Equal(all) {
		t.Errorf("it stops %s, want %s", d.Stop, all)
	}
	v.Clean = false
	if mine := v.Mine(); !mine.Empty() {
		t.Errorf("a damaged map gives %s to it", mine)
	}
}
