package ownership

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// Rule 7.

func TestALockedPartitionIsGivenToNoOtherID(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, d Decision) {
		for id, s := range owners(d.Next) {
			for p := range s.Minus(owners(in.Before)[id]).All() {
				for _, who := range lockers(in, p) {
					if who != id {
						t.Fatalf("id %d gets %d, on which the pod of id %d works", id, p, who)
					}
				}
			}
		}
	})
}

func TestWhatOnePodLocksIsItsOwnIfTheMapIsDamaged(t *testing.T) {
	forAll(t, draw.doubted, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil {
			return
		}
		for p := range parts {
			if who := lockers(in, p); len(who) == 1 && who[0] != noID && owner(d.Next.Owners, p) != who[0] {
				t.Fatalf("the pod of id %d alone works on %d, which is of %d now", who[0], p, owner(d.Next.Owners, p))
			}
		}
	})
}

func TestWhatTwoPodsLockIsNobodysIfTheMapIsDamaged(t *testing.T) {
	forAll(t, draw.doubted, func(t *rapid.T, in Input, d Decision) {
		for p := range parts {
			if who := lockers(in, p); len(who) > 1 && owner(owners(d.Next), p) != noID {
				t.Fatalf("%v lock %d, and %d has it", who, p, owner(d.Next.Owners, p))
			}
		}
	})
}

func TestWhatAPodWithoutAnEntryLocksIsNobodysIfTheMapIsDamaged(t *testing.T) {
	forAll(t, draw.doubted, func(t *rapid.T, in Input, d Decision) {
		for p := range parts {
			if slices.Contains(lockers(in, p), noID) && owner(owners(d.Next), p) != noID {
				t.Fatalf("a pod without an entry locks %d, and %d has it", p, owner(d.Next.Owners, p))
			}
		}
	})
}

// Rule 8.

func TestALivePodKeepsWhatItDoesNotYield(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		for id, h := range in.Holders {
			if taken := in.Before.Owners[id].Minus(owners(d.Next)[id]).Minus(h.Yields); h.Works && !taken.Empty() {
				t.Fatalf("%s is taken from id %d, whose pod has not yielded it", taken, id)
			}
		}
	})
}

// A pod above the count, too, keeps what its id owns until its slot goes, whatever its receipt says. Its next process may take it.
func TestAPodThatDoesNotWorkOnPartitionsKeepsThoseOfItsID(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil {
			return
		}
		for id, h := range in.Holders {
			inForce := placement.Between(0, d.Next.Count-1)
			if taken := in.Before.Owners[id].Minus(d.Next.Owners[id]).Intersect(inForce); h.Unaware && !taken.Empty() {
				t.Fatalf("%s is taken from id %d, whose next process may take it at any moment", taken, id)
			}
		}
	})
}

// Its receipt may be on its way, and it confirms the take by a map from before the plan.
func TestAPodThatHasAnEntryAndNoReceiptKeepsItsPartitions(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		for id, h := range in.Holders {
			if taken := in.Before.Owners[id].Minus(owners(d.Next)[id]); !h.Works && !h.Unaware && !taken.Empty() {
				t.Fatalf("%s is taken from id %d, whose pod may take it at any moment", taken, id)
			}
		}
	})
}

func TestNoIDGetsWhatItsPodYields(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, d Decision) {
		for id, s := range owners(d.Next) {
			if got := s.Minus(owners(in.Before)[id]).Intersect(in.Holders[id].Yields); !got.Empty() {
				t.Fatalf("id %d gets %s, which its pod yields", id, got)
			}
		}
	})
}

// mayMove says whether one write has to move p to an id.
func mayMove(in Input, p, to int) bool {
	from := owner(in.Before.Owners, p)
	_, alive := in.Holders[from]
	return movable(in, p, to) && (!alive || !rowGives(in, p, from)) // the next process of the pod may not know of the yield
}

// movable says whether nothing but the row as it was read can keep one write from moving p to an id.
func movable(in Input, p, to int) bool {
	from := owner(in.Before.Owners, p)
	h, alive := in.Holders[from]
	switch {
	case withheldBy(in):
		return false
	case from == noID && in.Unserved:
		return false
	case alive && !h.Yields.Contains(p):
		return false // a live pod works on it, or its next process may
	case from != noID && in.quarantined(from):
		return false
	case !alive && from != noID && from < in.Count && !in.Vacant[from]:
		return false // it waits for the next holder of its id
	case in.Holders[to].Yields.Contains(p):
		return false
	}
	return !slices.ContainsFunc(lockers(in, p), func(id int) bool { return id != to })
}

// rowGives reports whether a process of the id that knows nothing but the row might take p.
func rowGives(in Input, p, id int) bool {
	aims, known := View{Count: in.Count, Row: in.Before, Clean: true, Target: in.Wish.Target, Strategies: in.Strategies}.Aims()
	return !known || aims[id].Contains(p)
}

// Somebody may have removed the receipt that says so, and the next process of the pod may have taken it, as the row says.
func TestWhatTheRowGivesToItsIDIsGivenToNoOtherID(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		for id, s := range owners(d.Next) {
			for p := range s.Minus(in.Before.Owners[id]).All() {
				from := owner(in.Before.Owners, p)
				if _, alive := in.Holders[from]; alive && rowGives(in, p, from) {
					t.Fatalf("%d goes from id %d to %d, and the row gives it to the former", p, from, id)
				}
			}
		}
	})
}

func TestOneWriteMovesAllThatMayMoveToItsTarget(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil {
			return
		}
		aim := target(t, d.Next, in)
		for p := range d.Next.Count {
			to, now := owner(aim, p), owner(d.Next.Owners, p)
			if mayMove(in, p, to) && now != to {
				t.Fatalf("%d is of %d after the write, but it should be of %d", p, now, to)
			}
		}
	})
}

func TestAPartitionMovesNowhereButToItsTarget(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil {
			return
		}
		aim := target(t, d.Next, in)
		for id, s := range d.Next.Owners {
			if got := s.Minus(in.Before.Owners[id]); !got.Subset(aim[id]) {
				t.Fatalf("id %d gets %s, but it should have %s", id, got, aim[id])
			}
		}
	})
}

func TestAYieldedPartitionWhoseTargetIsTheSameIDIsLeftWithNobody(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil {
			return
		}
		aim := target(t, d.Next, in)
		for id, h := range in.Holders {
			if left := d.Next.Owners[id].Intersect(h.Yields).Intersect(aim[id]); h.Works && !left.Empty() {
				t.Fatalf("id %d still has %s, which its pod yields, and which nobody else gets", id, left)
			}
		}
	})
}

// What is nobody's has to wait for quarantines.
func TestWhatMayMoveWithTheNextWriteStaysWithItsID(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil {
			return
		}
		aim := target(t, d.Next, in)
		for p := range d.Next.Count {
			from, to, now := owner(in.Before.Owners, p), owner(aim, p), owner(d.Next.Owners, p)
			if to != noID && to != from && movable(in, p, to) && now != to && now != from {
				t.Fatalf("%d is of id %d and should be of %d, and it is left with %d", p, from, to, now)
			}
		}
	})
}

// Its holder may go on yielding it: nothing but the row that the first write read was in the way.
func TestTheSecondWriteMovesWhatTheFirstOneLeft(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil {
			return
		}
		first := in.Before
		in.Before = d.Next
		again := Plan(in)
		for id, h := range in.Holders {
			if left := owners(again.Next)[id].Intersect(first.Owners[id]).Intersect(h.Yields); !left.Empty() && !in.quarantined(id) {
				t.Fatalf("after two writes id %d still has %s: %s, %s", id, left, row(d.Next), row(again.Next))
			}
		}
	})
}

// Members.

func TestOnlyAPodThatWorksOnPartitionsJoins(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		for id := range owners(d.Next) {
			if _, was := in.Before.Owners[id]; !was && (id >= in.Count || !in.Holders[id].Works || in.Holders[id].Paused) {
				t.Fatalf("id %d joins", id)
			}
		}
	})
}

func TestOneWriteAddsAllWhoWork(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil || d.Next.Count == 0 || d.Next.Strategy == placement.NamePrimary || withheldBy(in) {
			return
		}
		for id, h := range in.Holders {
			if _, is := d.Next.Owners[id]; h.Works && !h.Paused && id < in.Count && !is {
				t.Fatalf("id %d works and is no member", id)
			}
		}
	})
}

// With primary an id that joins gets its own partitions back. So one whose pods crash again and again must not join at once.
func TestBesideOthersOnlyWhoHasHeldItsIDForLongJoinsPrimary(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil || d.Next.Count == 0 || d.Next.Strategy != placement.NamePrimary || in.Me >= in.Count || !in.Holders[in.Me].Works ||
			withheldBy(in) {
			return
		}
		was, is := members(in.Before, in.Count), members(d.Next, in.Count)
		if in.Joins && !slices.Contains(is, in.Me) && !in.Holders[in.Me].Paused {
			t.Fatalf("id %d has been held for long, and does not join", in.Me)
		}
		if !slices.ContainsFunc(was, func(id int) bool { return slices.Contains(is, id) }) {
			return // all may join, for nobody else has the partitions
		}
		for _, id := range is {
			if !slices.Contains(was, id) && (id != in.Me || !in.Joins) {
				t.Fatalf("id %d joins beside others, but it has not been held for long", id)
			}
		}
	})
}

func TestAMemberStaysUntilItHasBeenWithoutAHolderForLong(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil || d.Next.Count == 0 {
			return
		}
		for id := range in.Before.Owners {
			if _, is := d.Next.Owners[id]; id < in.Count && (!in.Vacant[id] || in.Holders[id].Works) && !is {
				t.Fatalf("id %d is no member any more", id)
			}
		}
	})
}

func TestAnIDThatHasBeenWithoutAHolderForLongIsNoMember(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		for id := range owners(d.Next) {
			if _, alive := in.Holders[id]; in.Vacant[id] && !alive && !in.quarantined(id) && !withheldBy(in) {
				t.Fatalf("id %d is still a member", id)
			}
		}
	})
}

// The row says who is paused, so that each process works out the members from the owner alone.
func TestTheRowSaysWhoIsPaused(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil || withheldBy(in) {
			return
		}
		for id := range d.Next.Owners {
			h, was, is := in.Holders[id], in.Before.Paused.Contains(id), d.Next.Paused.Contains(id)
			switch {
			case id >= in.Count && is:
				t.Fatalf("id %d is at or above the count, and paused", id)
			case id < in.Count && h.Works && h.Paused && !is:
				t.Fatalf("id %d is paused, and the row does not say so", id)
			case id < in.Count && !h.Works && was != is:
				t.Fatalf("id %d has no holder that says so, and the row says that it is paused: %t, and %t before", id, is, was)
			case h.Works && !h.Paused && is && !was:
				t.Fatalf("id %d is not paused, and the row says so", id)
			}
			if got := d.Next.Owners[id].Minus(in.Before.Owners[id]); is && !got.Empty() {
				t.Fatalf("id %d is paused and gets %s", id, got)
			}
		}
		if !d.Next.Paused.Subset(placement.Of(d.Next.Owners.IDs()...)) {
			t.Fatalf("%s is paused and not listed", d.Next.Paused)
		}
	})
}

// Nobody knows how long its work takes to stop. All that is nobody's goes to the others meanwhile.
func TestAPodThatIsPausedAndDoesNotStopKeepsNothingElseFromOthers(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, _ Decision) {
		in.Count, in.Before.Count, in.Wish.HasCount, in.Wish.Count = 3, parts, true, parts
		in.Before.Owners, in.Before.Paused = placement.Owners{0: placement.Between(0, 2), 1: {}, 2: {}}, placement.Set{}
		locked, none := placement.Between(0, 2), placement.Set{}
		in.Holders = map[int]Holder{0: {Works: true, Locks: locked, Paused: true}, 1: {Works: true, Locks: none}, 2: {Works: true, Locks: none}}
		in.Me, in.Strays, in.Vacant, in.Unserved = 1, nil, nil, false
		d := Plan(in)
		for p := 3; p < parts; p++ {
			if id := owner(d.Next.Owners, p); id != 1 && id != 2 {
				t.Fatalf("%d is of %d: %s", p, id, row(d.Next))
			}
		}
	})
}

// Who was listed and is not any more, below the count, was without a holder for long: nothing else takes an id out.
func TestAPlanTellsWhosePartitionsFailOver(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, d Decision) {
		var want []Change
		for id := range ids {
			_, is := owners(d.Next)[id]
			if was := owners(in.Before)[id]; in.Clean && id < in.Count && !was.Empty() && !is && d.Next != nil {
				want = append(want, Change{id, was})
			}
		}
		same := func(a, b Change) bool { return a.ID == b.ID && a.Set.Equal(b.Set) }
		if d.Next != nil && !slices.EqualFunc(want, d.FailedOver, same) {
			t.Fatalf("the partitions of %v fail over, and the plan says %v", want, d.FailedOver)
		}
	})
}

func TestAnIDAtOrAboveTheCountLeavesUnlessItsPodLives(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		for id := range owners(d.Next) {
			if _, alive := in.Holders[id]; id >= in.Count && !alive && !in.quarantined(id) {
				t.Fatalf("id %d is at or above the count and still listed", id)
			}
		}
	})
}

func TestAPodThatKnowsNoPartitionsWithholdsThem(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, d Decision) {
		if !withheldBy(in) {
			if d.Withheld {
				t.Fatal("withheld for nobody")
			}
			return
		}
		for id, s := range owners(d.Next) {
			if got := s.Minus(owners(in.Before)[id]).Minus(in.Holders[id].Locks); !got.Empty() {
				t.Fatalf("id %d gets %s beside a pod that knows no partitions", id, got)
			}
		}
	})
}

// Its next holder can take them then, and nobody else can.
func TestAnIDWithoutAHolderKeepsItsPartitionsWhileTheyAreWithheld(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if !withheldBy(in) || d.Next == nil {
			return
		}
		for id, s := range in.Before.Owners {
			lost := s.Minus(d.Next.Owners[id]).Intersect(placement.Between(0, d.Next.Count-1))
			if _, alive := in.Holders[id]; !alive && id < in.Count && !lost.Empty() {
				t.Fatalf("id %d loses %s to nobody", id, lost)
			}
		}
	})
}

func TestVerifyIsToldThatPartitionsOfNobodyAreWithheld(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil || !withheldBy(in) {
			return
		}
		for p := range d.Next.Count {
			if owner(d.Next.Owners, p) == noID && !d.Withheld {
				t.Fatalf("%d is nobody's, and nothing says why", p)
			}
		}
	})
}

// Rules 10 and 11.

func TestAnIDThatIsNotKnownToBeDeadForLongKeepsItsPartitions(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		for id, s := range in.Before.Owners {
			if _, alive := in.Holders[id]; alive || id >= in.Count || in.Vacant[id] || d.Next == nil {
				continue
			}
			if lost := s.Minus(d.Next.Owners[id]).Intersect(placement.Between(0, d.Next.Count-1)); !lost.Empty() {
				t.Fatalf("id %d waits for its next holder and loses %s", id, lost)
			}
		}
	})
}

func TestAnIDInQuarantineKeepsItsPartitions(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		for id, s := range in.Before.Owners {
			if in.quarantined(id) && !s.Subset(owners(d.Next)[id]) {
				t.Fatalf("id %d is in quarantine and loses %s", id, s.Minus(owners(d.Next)[id]))
			}
		}
	})
}

func TestAfterAWipeNobodyGetsWhatIsNobodys(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, d Decision) {
		if !in.Unserved {
			return
		}
		for id, s := range owners(d.Next) {
			for p := range s.Minus(in.Holders[id].Locks).All() {
				if in.Trust.Believed() && owner(owners(in.Before), p) != noID {
					continue
				}
				t.Fatalf("id %d gets %d, which was nobody's, within the quarantine", id, p)
			}
		}
	})
}

// What is in force.

func TestTheUsersCountIsTakenOver(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, d Decision) {
		if in.Wish.HasCount && d.Next != nil && d.Next.Count != in.Wish.Count {
			t.Fatalf("%d partitions are in force, not %d", d.Next.Count, in.Wish.Count)
		}
		if in.Wish.HasCount && in.Wish.Count > 0 && d.Next == nil && in.Holders[in.Me].Works && !in.Holders[in.Me].Paused && in.Me < in.Count && !withheldBy(in) {
			t.Fatal("there are no partitions")
		}
	})
}

func TestAKnownStrategyIsTakenOver(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, d Decision) {
		if in.Wish.HasCount && in.Wish.Strategy != "" && d.Next != nil && d.Next.Strategy != in.Wish.Strategy {
			t.Fatalf("%s is in force, not %s", d.Next.Strategy, in.Wish.Strategy)
		}
	})
}

func TestAStrategyThatNobodyKnowsChangesNothing(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, _ Decision) {
		in.Wish.HasCount, in.Wish.Strategy = true, later
		if d := Plan(in); d.Next == nil && in.Wish.Count > 0 || d.Next != nil && d.Next.Strategy != in.Before.Strategy {
			t.Fatalf("%s was in force, and now %s", in.Before.Strategy, row(d.Next))
		}
	})
}

func TestAnAbsentCountChangesNothingWhilePartitionsAreOwned(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, _ Decision) {
		in.Wish.HasCount, in.Wish.Count = false, 0
		d := Plan(in)
		if in.Before != nil && in.Before.Count > 0 && in.Trust.Believed() && (d.Next == nil || d.Next.Count != in.Before.Count) {
			t.Fatalf("somebody removed the count, and %s is in force", row(d.Next))
		}
		if in.Before == nil && d.Next != nil {
			t.Fatalf("nobody asks for partitions, and %s is in force", row(d.Next))
		}
	})
}

func TestAnAbsentCountKeepsTheStrategyToo(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, _ Decision) {
		in.Wish = assignment.Wish{}
		if d := Plan(in); d.Next != nil && d.Next.Strategy != in.Before.Strategy {
			t.Fatalf("%s was in force, and now %s", in.Before.Strategy, d.Next.Strategy)
		}
	})
}

// Its key is there, so the default is not what the user asks for.
func TestAStrategyThatMakesNoSenseChangesNothing(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, _ Decision) {
		in.Wish.HasCount, in.Wish.Strategy = true, ""
		in.Wish.Problems = []assignment.ProblemError{{Key: assignment.PartitionStrategyKey, Detail: "not the name of a strategy"}}
		if d := Plan(in); d.Next != nil && d.Next.Strategy != in.Before.Strategy {
			t.Fatalf("%s was in force, and now %s", in.Before.Strategy, d.Next.Strategy)
		}
	})
}

func TestAStrategyThatNobodyKnowsBeginsNothing(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, _ Decision) {
		in.Before, in.Clean = nil, false
		in.Wish.HasCount, in.Wish.Strategy = true, later
		if d := Plan(in); d.Next != nil || d.Changed || d.Unknown != later {
			t.Fatalf("%s, changed %v, unknown %q", row(d.Next), d.Changed, d.Unknown)
		}
	})
}

func TestACountOfZeroEndsPartitions(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, _ Decision) {
		in.Wish.HasCount, in.Wish.Count = true, 0
		for id, h := range in.Holders {
			if h.Works {
				h.Locks, h.Yields = placement.Set{}, in.Before.Owners[id] // all has stopped
				in.Holders[id] = h
			}
		}
		in.Strays = nil
		d := Plan(in)
		for id, s := range owners(d.Next) {
			if _, alive := in.Holders[id]; !s.Empty() && (in.Holders[id].Works || !alive && in.Vacant[id] && !in.quarantined(id)) {
				t.Fatalf("there are no partitions, and id %d still has %s", id, s)
			}
		}
	})
}

// Without the row the map is not clean as long as a pod locks partitions, so that pod would never hear that they ended.
func TestTheEndIsWrittenDownUntilNobodyLocksAPartition(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, _ Decision) {
		in.Wish.HasCount, in.Wish.Count = true, 0
		in.Before.Owners = placement.Owners{}
		d := Plan(in)
		for p := range parts {
			if who := lockers(in, p); len(who) > 0 && d.Next == nil {
				t.Fatalf("%v lock %d, and the row is gone", who, p)
			}
		}
	})
}

func TestWhatIsAtOrAboveTheCountIsGivenToNobody(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		for id, s := range owners(d.Next) {
			for p := range s.Minus(in.Before.Owners[id]).All() {
				if p >= d.Next.Count {
					t.Fatalf("id %d gets %d of %d", id, p, d.Next.Count)
				}
			}
		}
	})
}

func TestWhoDoesNotKnowTheStrategyInForceMovesNothing(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, _ Decision) {
		if in.Before == nil {
			return
		}
		in.Before.Strategy, in.Wish.Strategy = later, later
		in.Wish.HasCount = true
		if d := Plan(in); d.Changed || !d.Next.Same(in.Before) || d.Unknown != later {
			t.Fatalf("%s, changed %v, unknown %q", row(d.Next), d.Changed, d.Unknown)
		}
	})
}

func TestNothingIsSaidOfAWorkloadWithoutPartitions(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, _ Decision) {
		in.Before, in.Wish = nil, assignment.Wish{}
		if d := Plan(in); d.Next != nil || d.Changed || d.Withheld || d.Unknown != "" {
			t.Fatalf("%+v", d)
		}
	})
}

// The plan itself.

func TestAPlanCanBeStoredAndReadAgain(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, _ Input, d Decision) {
		if d.Next == nil {
			return
		}
		read, err := placement.ParseOwners(d.Next.Owners.String(), parts)
		if err != nil || !read.Equal(d.Next.Owners) {
			t.Fatalf("%s: %v", d.Next.Owners, err)
		}
	})
}

// yields says that a pod yields what its id owns. The first write may leave that with the id, and the second one with nobody. Then the
// target may be another one.
func yields(in Input) bool {
	for id, h := range in.Holders {
		if !in.Before.Owners[id].Intersect(h.Yields).Empty() {
			return true
		}
	}
	return false
}

func TestAPlanHasTheEpochThatWasRead(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next != nil && d.Next.Epoch != in.Before.Epoch {
			t.Fatalf("epoch %d", d.Next.Epoch)
		}
	})
}

func TestAPlanThatWasWrittenIsNotRepeated(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		more := 0
		if yields(in) {
			more = 2
		}
		for range 1 + more {
			in.Before = d.Next
			if d.Next == nil {
				in.Trust = assignment.Absent
			}
			if d = Plan(in); !d.Changed {
				return
			}
		}
		t.Fatalf("again: %s", row(d.Next))
	})
}

func TestARestoredMapIsRestoredOnce(t *testing.T) {
	forAll(t, draw.doubted, func(t *rapid.T, in Input, d Decision) {
		in.Before, in.Trust, in.Clean = d.Next, assignment.Clean, true
		if d.Next == nil {
			in.Trust = assignment.Absent
		}
		for range 3 {
			d = Plan(in)
			if !d.Changed {
				return
			}
			in.Before = d.Next
		}
		t.Fatalf("it is still written anew: %s", row(d.Next))
	})
}

func TestAWriteIsAskedForIfSomethingChanges(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Changed == d.Next.Same(in.Before) {
			t.Fatalf("changed %v", d.Changed)
		}
		in.Renew = true
		if again := Plan(in); d.Next != nil && !again.Changed || !again.Next.Same(d.Next) {
			t.Fatalf("renewed: changed %v, %s", again.Changed, row(again.Next))
		}
	})
}

func TestAMapThatIsNotCleanIsWrittenAnewAlsoIfItsContentIsRight(t *testing.T) {
	forAll(t, draw.doubted, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil || in.Trust == assignment.Clean {
			return
		}
		in.Before = d.Next
		// A write cannot make a map clean that nobody tracks.
		if again := Plan(in); !again.Changed && in.Trust != assignment.Untracked {
			t.Fatalf("a map that is not clean stays so: %s", row(again.Next))
		}
	})
}

func TestAPlanTellsWhoGotAndLostWhat(t *testing.T) {
	forAll(t, draw.clean, func(t *rapid.T, in Input, d Decision) {
		if d.Next == nil {
			return
		}
		var gained, lost []Change
		for id := range ids {
			was, is := in.Before.Owners[id], d.Next.Owners[id]
			if s := is.Minus(was); !s.Empty() {
				gained = append(gained, Change{id, s})
			}
			if s := was.Minus(is); !s.Empty() {
				lost = append(lost, Change{id, s})
			}
		}
		same := func(a, b Change) bool { return a.ID == b.ID && a.Set.Equal(b.Set) }
		if !slices.EqualFunc(gained, d.Gained, same) || !slices.EqualFunc(lost, d.Lost, same) {
			t.Fatalf("gained %v and lost %v, but the plan says %v and %v", gained, lost, d.Gained, d.Lost)
		}
	})
}

func TestAPlanIsPure(t *testing.T) {
	forAll(t, draw.anyWorld, func(t *rapid.T, in Input, d Decision) {
		was := told(in)
		if again := Plan(in); !reflect.DeepEqual(again, d) || told(in) != was {
			t.Fatalf("the same world has two plans, %+v", again)
		}
	})
}

func TestTheFirstRolloutIsSaidToWithholdPartitions(t *testing.T) {
	d := Plan(Input{
		Count: 2, Trust: assignment.Absent, Wish: assignment.Wish{HasCount: true, Count: 2}, Me: 1, Strategies: placement.Named,
		Holders: map[int]Holder{0: {Unaware: true}, 1: {Works: true}},
	})
	if d.Next != nil || !d.Withheld {
		t.Fatalf("next %+v, withheld %t", d.Next, d.Withheld)
	}
}

func TestTheEndOfPartitionsSaysWhatIDsLost(t *testing.T) {
	d := Plan(Input{
		Count: 1, Trust: assignment.Clean, Clean: true, Wish: assignment.Wish{HasCount: true}, Strategies: placement.Named,
		Before:  &assignment.Partitions{Count: 1, Strategy: placement.NameSticky, Owners: placement.Owners{0: placement.Of(0)}},
		Holders: map[int]Holder{0: {Works: true, Yields: placement.Of(0)}},
	})
	if d.Next != nil || !d.Changed || len(d.Lost) != 1 || !d.Lost[0].Set.Equal(placement.Of(0)) {
		t.Fatalf("%+v", d)
	}
}
