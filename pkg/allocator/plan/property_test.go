package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// genInput draws an owner that may be in any state, and pods that may be in any state, with the
// one thing that always holds: me is alive.
func genInput() *rapid.Generator[Input] {
	return rapid.Custom(func(t *rapid.T) Input {
		in := Input{
			Count:      rapid.IntRange(0, 8).Draw(t, "count"),
			Trust:      trustIf(rapid.Bool().Draw(t, "clean")),
			NeedsWrite: rapid.Bool().Draw(t, "needs a write"),
			Intent:     rapid.SampledFrom([]Intent{Claim, Move, Release}).Draw(t, "intent"),
			Now:        t0,
		}
		in.State = assignment.State{Slots: slots{}, UIDs: slots{}, Handover: slots{}, Epoch: rapid.Int64Range(0, 200).Draw(t, "epoch")}
		names := rapid.Permutation([]string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"}).Draw(t, "holders")
		for i, id := range rapid.SliceOfNDistinct(rapid.IntRange(0, 10), 0, 8, rapid.ID[int]).Draw(t, "ids") {
			in.State.Slots[id] = names[i]
			in.State.UIDs[id] = rapid.SampledFrom([]string{"uid-" + names[i], "uid-" + names[i], "old"}).Draw(t, "uid")
		}
		for i, id := range rapid.SliceOfNDistinct(rapid.IntRange(0, 10), 0, 3, rapid.ID[int]).Draw(t, "asked") {
			in.State.Handover[id] = names[i+3]
		}
		for i := range 10 {
			if i > 0 && !rapid.Bool().Draw(t, "lives") {
				continue
			}
			in.Pods = append(in.Pods, genPod(t, fmt.Sprintf("p%d", i)))
		}
		in.Me = "p0"
		in.Rollout = Rollout{
			Current: rapid.Bool().Draw(t, "current"), MaxUnavailable: rapid.IntRange(0, 3).Draw(t, "maxUnavailable"),
			Available: rapid.IntRange(0, 3).Draw(t, "available"),
		}
		in.StandsBack = rapid.Bool().Draw(t, "standsBack")
		in.TakeReserved = rapid.IntRange(0, 4).Draw(t, "take reserved") == 0
		genStrict(t, &in)
		if in.Intent != Claim {
			gaveUp(&in.Pods[0]) // who gives has said so on its receipt first
		}
		return in
	})
}

func genPod(t *rapid.T, name string) Pod {
	p := pod(name, rapid.IntRange(0, 3).Draw(t, "age"))
	p.Controller = rapid.SampledFrom([]string{"rs-1", "rs-2"}).Draw(t, "revision")
	p.Terminating = rapid.IntRange(0, 4).Draw(t, "terminating") == 0
	p.Owned = rapid.IntRange(0, 4).Draw(t, "owned") > 0
	p.Ordinal = rapid.IntRange(NoOrdinal, 6).Draw(t, "ordinal")
	switch rapid.IntRange(0, 4).Draw(t, "receipt") {
	case 2:
		waits(&p)
	case 0:
		holdsSince(rapid.IntRange(0, 9).Draw(t, "slot"), rapid.Int64Range(1, 300).Draw(t, "receiptEpoch"))(&p)
		p.Receipt.HandsOver = rapid.Bool().Draw(t, "handsOver")
	case 1:
		if rapid.Bool().Draw(t, "gives") {
			gives(rapid.IntRange(0, 9).Draw(t, "given"))(&p)
		} else {
			gaveUp(&p)
		}
	}
	if p.Receipt != nil && rapid.IntRange(0, 3).Draw(t, "failed") == 0 {
		p.Receipt.Failed = rapid.IntRange(1, 4).Draw(t, "failures")
	}
	return p
}

// after returns the state that the plan leaves.
func after(in Input, d Decision) assignment.State {
	if d.Next == nil {
		return in.State
	}
	return *d.Next
}

// invariant is what holds for every plan. The property tests draw the input, the fuzz target reads it from bytes.
type invariant func(t rapid.TB, in Input, d Decision)

func property(t *testing.T, check invariant) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		check(t, in, Plan(in))
	})
}

func TestNeverTwoIDsForAPod(t *testing.T) { property(t, neverTwoIDsForAPod) }

func neverTwoIDsForAPod(t rapid.TB, in Input, d Decision) {
	t.Helper()
	seen := map[string]int{}
	for id, name := range after(in, d).Slots {
		if other, twice := seen[name]; twice {
			t.Fatalf("%s has %d and %d", name, other, id)
		}
		seen[name] = id
	}
}

// A map has one pod for an id by its type; what could go wrong is a second pod that acts: one whose
// receipt is a lock on a slot that is given to somebody new.
func TestALockedSlotIsGivenToNobodyElse(t *testing.T) { property(t, aLockedSlotIsGivenToNobodyElse) }

func aLockedSlotIsGivenToNobodyElse(t rapid.TB, in Input, d Decision) {
	t.Helper()
	for _, p := range in.Pods {
		if !p.locks() {
			continue
		}
		for _, filled := range d.Filled {
			if filled.ID != p.Receipt.ID || filled.Pod == p.Name {
				continue
			}
			t.Fatalf("slot %d, locked by %s, is given to %s", filled.ID, p.Name, filled.Pod)
		}
	}
}

func podNamed(in Input, name string) Pod {
	for _, p := range in.Pods {
		if p.Name == name {
			return p
		}
	}
	return Pod{}
}

func TestALivePodsEntryIsNeverTaken(t *testing.T) { property(t, aLivePodsEntryIsNeverTaken) }

func aLivePodsEntryIsNeverTaken(t rapid.TB, in Input, d Decision) {
	t.Helper()
	if in.Trust != assignment.Clean {
		return
	}
	next := after(in, d)
	for id, name := range in.State.Slots {
		p := podNamed(in, name)
		if p.Name == "" || in.State.UIDs[id] != p.UID || (name == in.Me && in.Intent != Claim) || p.gives(id) {
			continue
		}
		if next.Slots[id] != name {
			t.Fatalf("slot %d of the live pod %s is now %q", id, name, next.Slots[id])
		}
	}
}

func TestReceiptsAreTheAssignmentOfAMapThatIsNotClean(t *testing.T) {
	property(t, receiptsAreTheAssignmentOfAMapThatIsNotClean)
}

func receiptsAreTheAssignmentOfAMapThatIsNotClean(t rapid.TB, in Input, d Decision) {
	t.Helper()
	if in.Trust == assignment.Clean {
		return
	}
	next := after(in, d)
	for _, p := range in.Pods {
		if !p.locks() {
			continue
		}
		want := p.Name
		for _, o := range in.Pods {
			if o.Name != p.Name && o.locks() && o.Receipt.ID == p.Receipt.ID {
				want = "" // nobody's
			}
		}
		if next.Slots[p.Receipt.ID] != want {
			t.Fatalf("slot %d is %q, but the receipts say %q", p.Receipt.ID, next.Slots[p.Receipt.ID], want)
		}
	}
}

func TestWhoLocksASlotGetsNoOther(t *testing.T) { property(t, whoLocksASlotGetsNoOther) }

func whoLocksASlotGetsNoOther(t rapid.TB, in Input, d Decision) {
	t.Helper()
	for _, filled := range d.Filled {
		if p := podNamed(in, filled.Pod); p.locks() && p.Receipt.ID != filled.ID {
			t.Fatalf("%s, whose receipt names slot %d, is given %d", p.Name, p.Receipt.ID, filled.ID)
		}
	}
}

func TestDeterministicAndIndependentOfListOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		shuffled := in
		shuffled.Pods = rapid.Permutation(in.Pods).Draw(t, "shuffled")
		before := in.State.Clone()
		if a, b := Plan(in), Plan(shuffled); !reflect.DeepEqual(a, b) {
			t.Fatalf("one input, two plans: %+v and %+v", a, b)
		}
		if !in.State.SameContent(before) {
			t.Fatal("Plan changed its input")
		}
	})
}

func TestPlanningAgainChangesNothing(t *testing.T) { property(t, planningAgainChangesNothing) }

func planningAgainChangesNothing(t rapid.TB, in Input, d Decision) {
	t.Helper()
	again := in
	again.State, again.Trust, again.NeedsWrite = after(in, d), assignment.Clean, false
	if in.Trust != assignment.Clean {
		again.State = after(again, Plan(again)) // restored first, asked then
	}
	if (d.Next == nil && in.Trust != assignment.Clean) || (in.Trust == assignment.Untracked) { // an untracked map never becomes clean
		return
	}
	if d.TooLarge != nil {
		comesToRest(t, again) // what was written may have made room: a request that was met, for example
		return
	}
	// A pod that gives is told to give once; it has nothing to give then.
	if next := Plan(again).Next; next != nil && in.Intent == Claim {
		t.Fatalf("planned %v, and again %v", again.State, *next)
	}
}

// comesToRest plans until there is nothing to do.
func comesToRest(t rapid.TB, in Input) {
	t.Helper()
	for range len(in.Pods) + 2 {
		next := Plan(in).Next
		if next == nil || in.Intent != Claim {
			return
		}
		in.State = *next
	}
	t.Fatalf("one plan follows another: %+v", in)
}

func locksAndLive(in Input) (locked map[int]bool, live int) {
	locked = map[int]bool{}
	for _, p := range in.Pods {
		if p.locks() {
			locked[p.Receipt.ID] = true
		}
		if p.Owned {
			live++
		}
	}
	return locked, live
}

func TestEveryFreeSlotIsGivenWhileASiblingWaits(t *testing.T) {
	property(t, everyFreeSlotIsGivenWhileASiblingWaits)
}

func everyFreeSlotIsGivenWhileASiblingWaits(t rapid.TB, in Input, d Decision) {
	t.Helper()
	next := after(in, d)
	locked, live := locksAndLive(in)
	free := free(in, next, locked)
	if free == 0 || d.TooLarge != nil {
		return
	}
	for _, p := range in.Pods {
		if p.gaveUp() && p.Receipt.Gives {
			return // waits for another slot than that
		}
	}
	me := podNamed(in, in.Me)
	if in.Intent == Claim && mayStandBack(in, me, live) {
		return // and gives nothing to its own revision
	}
	for _, p := range in.Pods {
		_, has := next.Slots.Of(p.Name)
		sibling := p.Controller == me.Controller
		bound := p.Ordinal >= 0 && p.Ordinal < in.Count // waits for one slot only
		// Where there are not enough slots, a pod that has not shown life plans for itself.
		left := p.Name != in.Me && (!p.showsLife() || p.failed()) && fewerThanWanted(in, next, locked)
		if sibling && wantsOne(in, p) && !has && !bound && !left && !mayStandBack(in, p, live) {
			t.Fatalf("%s waits while %d slots are free: %v", p.Name, free, next.Slots)
		}
	}
}

// wantsOne reports whether p may be given a slot if it has none.
func wantsOne(in Input, p Pod) bool {
	return !p.Terminating && p.Owned && !p.locks() && (p.Name != in.Me || in.Intent != Release)
}

// mayStandBack reports whether p may be left without a slot for others: it made room for another revision, or it failed.
func mayStandBack(in Input, p Pod, live int) bool {
	takes := in.TakeReserved && p.Name == in.Me
	return live > in.Count && !takes && (p.failed() || (p.gaveUp() && !in.Rollout.Current))
}

// free counts the slots below the count that may be given to anybody.
func free(in Input, next assignment.State, locked map[int]bool) int {
	n := 0
	for id := range in.Count {
		epoch, quarantined := next.Quarantine.Since(id)
		if _, taken := next.Slots[id]; !taken && !locked[id] && next.Handover[id] == "" && (!quarantined || in.Served[epoch]) {
			n++
		}
	}
	return n
}

// fewerThanWanted reports whether fewer slots below the count are left than pods without one.
func fewerThanWanted(in Input, next assignment.State, locked map[int]bool) bool {
	left := 0
	for id := range in.Count {
		if _, taken := next.Slots[id]; !taken && !locked[id] {
			left++
		}
	}
	for _, p := range in.Pods {
		if _, has := next.Slots.Of(p.Name); !has && p.Owned && !p.Terminating && (p.Name != in.Me || in.Intent != Release) {
			left--
		}
	}
	return left < 0
}

func TestAPodThatMayNeverStartTakesNothingFromOneThatRuns(t *testing.T) {
	property(t, aPodThatMayNeverStartTakesNothingFromOneThatRuns)
}

func aPodThatMayNeverStartTakesNothingFromOneThatRuns(t rapid.TB, in Input, d Decision) {
	t.Helper()
	next := after(in, d)
	locked, _ := locksAndLive(in)
	for _, a := range d.HandOver.Asked {
		if p := podNamed(in, a.Pod); a.Pod != in.Me && (!p.showsLife() || p.failed()) {
			t.Fatalf("slot %d is asked for on behalf of %s, which may never start", a.ID, a.Pod)
		} else if a.Pod == in.Me && in.StandsBack {
			t.Fatalf("%s asks before its time", a.Pod)
		}
	}
	for _, filled := range d.Filled {
		p := podNamed(in, filled.Pod)
		bound := p.Ordinal >= 0 && p.Ordinal < in.Count // its slot is no other pod's
		if filled.Pod != in.Me && !p.showsLife() && !bound && in.State.Handover[filled.ID] != filled.Pod && fewerThanWanted(in, next, locked) {
			t.Fatalf("slot %d is given to %s, which may never start, and slots are scarce: %v", filled.ID, filled.Pod, next.Slots)
		}
	}
}

func TestOnlyDeadOrOwnEntriesMove(t *testing.T) { property(t, onlyDeadOrOwnEntriesMove) }

func onlyDeadOrOwnEntriesMove(t rapid.TB, in Input, d Decision) {
	t.Helper()
	if in.Trust != assignment.Clean || d.Next == nil {
		return
	}
	for id, name := range in.State.Slots {
		changed := d.Next.Slots[id] != name || d.Next.UIDs[id] != in.State.UIDs[id]
		freed := slices.ContainsFunc(d.Freed, func(c Change) bool { return c.ID == id })
		if changed && !freed {
			t.Fatalf("slot %d of %s moved without a cause: %v", id, name, d.Next.Slots)
		}
	}
}

func TestEpochGrows(t *testing.T) { property(t, epochGrows) }

func epochGrows(t rapid.TB, in Input, d Decision) {
	t.Helper()
	if d.Next == nil {
		return
	}
	for _, p := range in.Pods {
		if p.locks() && d.Next.Epoch <= p.Receipt.Epoch {
			t.Fatalf("epoch %d does not exceed %s's receipt %d", d.Next.Epoch, p.Name, p.Receipt.Epoch)
		}
	}
	if d.Next.Epoch <= in.State.Epoch || d.Next.Epoch < in.Now.UnixMilli() {
		t.Fatalf("epoch %d after %d at %d", d.Next.Epoch, in.State.Epoch, in.Now.UnixMilli())
	}
}

// trustIf is a clean map, or one that somebody else wrote.
func trustIf(clean bool) assignment.Trust {
	if clean {
		return assignment.Clean
	}
	return assignment.Foreign
}
