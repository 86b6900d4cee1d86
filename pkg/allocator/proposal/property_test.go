package proposal

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// genInput draws an owner and pods that may be in any state. me is alive.
func genInput() *rapid.Generator[Input] {
	return rapid.Custom(func(t *rapid.T) Input {
		in := Input{Count: rapid.IntRange(0, 8).Draw(t, "count"), Me: "p0", Now: t0}
		in.State = assignment.State{Slots: slots{}, Handover: slots{}}
		names := rapid.Permutation([]string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"}).Draw(t, "holders")
		for i, id := range rapid.SliceOfNDistinct(rapid.IntRange(0, 10), 0, 8, rapid.ID[int]).Draw(t, "ids") {
			in.State.Slots[id] = names[i]
		}
		for i, id := range rapid.SliceOfNDistinct(rapid.IntRange(0, 10), 0, 3, rapid.ID[int]).Draw(t, "asked") {
			in.State.Handover[id] = names[i+3]
		}
		for i := range 10 {
			if i == 0 || rapid.Bool().Draw(t, "lives") {
				in.Pods = append(in.Pods, genPod(t, fmt.Sprintf("p%d", i)))
			}
		}
		in.Rollout = Rollout{
			Current: rapid.Bool().Draw(t, "current"), MaxUnavailable: rapid.IntRange(0, 3).Draw(t, "maxUnavailable"),
			Available: rapid.IntRange(0, 3).Draw(t, "available"),
		}
		in.StandsBack = rapid.Bool().Draw(t, "standsBack")
		in.FreeFor = Reserved(rapid.IntRange(gaveUp, failed).Draw(t, "patience")) * time.Duration(rapid.IntRange(0, 1).Draw(t, "free for long"))
		return in
	})
}

func genPod(t *rapid.T, name string) Pod {
	p := pod(name, rapid.IntRange(0, 3).Draw(t, "age"))
	p.Controller = rapid.SampledFrom([]string{"rs-1", "rs-2"}).Draw(t, "revision")
	p.Terminating = rapid.IntRange(0, 4).Draw(t, "terminating") == 0
	p.Deadline = t0.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "grace")))
	p.Owned = rapid.IntRange(0, 4).Draw(t, "owned") > 0
	p.Ordinal = rapid.IntRange(NoOrdinal, 6).Draw(t, "ordinal")
	p.Condemned = p.Owned && rapid.IntRange(0, 4).Draw(t, "condemned") == 0
	p.Receipt.State = rapid.SampledFrom([]receipt.State{
		receipt.None, receipt.None, receipt.Waits, receipt.Waits, receipt.GaveUp, receipt.Locks, receipt.Locks, receipt.Unreadable,
	}).Draw(t, "receipt")
	if p.Receipt.Locked() {
		p.Receipt.Share.ID = rapid.IntRange(0, 9).Draw(t, "slot")
	}
	if p.Receipt.State != receipt.None {
		p.Receipt.Rank = max(0, rapid.IntRange(-3, 4).Draw(t, "rank"))
		p.Receipt.HandsOver, p.Receipt.Strict = rapid.Bool().Draw(t, "handsOver"), rapid.IntRange(0, 3).Draw(t, "strict") == 0
	}
	return p
}

// invariants hold for every plan.
var invariants = []func(t *rapid.T, in Input, d Decision){ //nolint:gochecknoglobals // a constant that Go cannot express
	neverTwoEntriesForAPod, whatOnePodLocksIsItsOwn, onlyLivePodsHaveEntries, requestsAreFewAndMeetable, nothingIsFreeWhileAPodWaits,
}

func TestEveryInvariantHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		d := Plan(in)
		for _, check := range invariants {
			check(t, in, d)
		}
		in.State = after(in, d)
		if again := Plan(in).Next; again != nil {
			t.Fatalf("planned %+v, and again %+v", in.State, *again)
		}
	})
}

// Whatever partitions there are besides, the same holds.
func FuzzPlan(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		in := genDivided().Draw(t, "in")
		d := Plan(in)
		for _, check := range invariants {
			check(t, in, d)
		}
		locksAreHeeded(t, in, d)
	}))
}

func neverTwoEntriesForAPod(t *rapid.T, in Input, d Decision) {
	seen := map[string]int{}
	for id, name := range after(in, d).Slots {
		if other, twice := seen[name]; twice {
			t.Fatalf("%s has %d and %d", name, other, id)
		}
		seen[name] = id
	}
}

func (in Input) pod(name string) *Pod {
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Name == name && (!p.Receipt.Strict || !p.overdue(in.Now)) {
			return p
		}
	}
	return nil
}

// lockersOf returns the live pods whose receipts lock the slot.
func (in Input) lockersOf(id int) (names []string) {
	for _, p := range in.Pods {
		if in.pod(p.Name) != nil && p.Receipt.Slot() == id {
			names = append(names, p.Name)
		}
	}
	return names
}

func whatOnePodLocksIsItsOwn(t *rapid.T, in Input, d Decision) {
	next := after(in, d).Slots
	for id := range 11 {
		lockers := in.lockersOf(id)
		switch name := next[id]; {
		case len(lockers) == 1 && name == "" && d.TooLarge != nil && in.State.Slots[id] != lockers[0]: // there may be no room to say so
		case len(lockers) == 1 && name != lockers[0]:
			t.Fatalf("slot %d of %s is %q", id, lockers[0], name)
		case len(lockers) > 1 && name != "" && (name != in.State.Slots[id] || !slices.Contains(lockers, name)):
			t.Fatalf("slot %d, which %v lock, is proposed to %s", id, lockers, name)
		}
	}
}

func onlyLivePodsHaveEntries(t *rapid.T, in Input, d Decision) {
	for id, name := range after(in, d).Slots {
		if p := in.pod(name); p == nil || (!p.Receipt.Locked() && (p.Terminating || id >= in.Count || p.Receipt.State == receipt.GaveUp)) {
			t.Fatalf("slot %d has an entry for %s", id, name)
		}
	}
}

func requestsAreFewAndMeetable(t *rapid.T, in Input, d Decision) {
	next := after(in, d)
	for _, a := range d.HandOver.Asked {
		me, requester, holder := in.pod(in.Me), in.pod(a.Pod), in.pod(next.Slots[a.ID])
		switch {
		case requester.Condemned, requester.Controller != me.Controller, requester != me && !requester.runs(), requester == me && in.StandsBack:
			t.Fatalf("%s asks for slot %d", a.Pod, a.ID)
		case !holder.Condemned && !in.Rollout.Current, !holder.Condemned && holder.Controller == me.Controller:
			t.Fatalf("%+v is asked for slot %d, and it is not to go", holder, a.ID)
		case !holder.Receipt.HandsOver || holder.Terminating || a.ID >= in.Count:
			t.Fatalf("%+v is asked for slot %d", holder, a.ID)
		}
	}
	if len(d.HandOver.Asked) > 0 && d.HandOver.UnderWay > max(1, in.Rollout.MaxUnavailable) {
		t.Fatalf("%d hand-overs under way, %d may be", d.HandOver.UnderWay, in.Rollout.MaxUnavailable)
	}
	asking := map[string]bool{}
	for id, name := range next.Handover {
		p := in.pod(name)
		if _, has := next.Slots.Of(name); has || asking[name] || p.Receipt.Locked() || p.Terminating || p.Receipt.State == receipt.GaveUp || id >= in.Count {
			t.Fatalf("%s asks for slot %d: %v", name, id, next)
		}
		asking[name] = true
	}
}

// waiting returns the pods of the planner's controller that run, want any slot, and have none.
func waiting(in Input, next assignment.State) (names []string) {
	me := in.pod(in.Me)
	for i := range in.Pods {
		p := in.pod(in.Pods[i].Name)
		if me == nil || p == nil || p.Controller != me.Controller || !p.Owned || p.Terminating || p.Receipt.Locked() || p.Receipt.State == receipt.GaveUp {
			continue
		}
		bound := p.Ordinal >= 0 && p.Ordinal < in.Count // it waits for one slot only
		if _, has := next.Slots.Of(p.Name); !has && !bound && (p == me || p.runs()) {
			names = append(names, p.Name)
		}
	}
	return names
}

// free returns the slots below the count that no pod has.
func (in Input) free(next assignment.State) (ids []int) {
	for id := range in.Count {
		if next.Slots[id] == "" && len(in.lockersOf(id)) == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

func nothingIsFreeWhileAPodWaits(t *rapid.T, in Input, d Decision) {
	next := after(in, d)
	if names := waiting(in, next); len(names) > 0 && len(in.free(next)) > 0 && d.Reserved == 0 && d.TooLarge == nil {
		t.Fatalf("%v wait while slots %d are free: %v", names, in.free(next), next.Slots)
	}
}

// A pod that must leave a slot takes it when it has been free for long.
func TestNoPodLeavesASlotForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		in.FreeFor = Reserved(failed)
		next := after(in, Plan(in))
		if slices.Contains(waiting(in, next), in.Me) && len(in.free(next)) > 0 {
			t.Fatalf("%s waits while slots %d are free: %v", in.Me, in.free(next), next.Slots)
		}
	})
}

func TestThePlanDependsOnItsInputAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genDivided().Draw(t, "in")
		shuffled, before := in, in.State.Encode()
		shuffled.Pods = rapid.Permutation(in.Pods).Draw(t, "shuffled")
		if a, b := Plan(in), Plan(shuffled); !reflect.DeepEqual(a, b) {
			t.Fatalf("one input, two plans: %+v and %+v", a, b)
		}
		if !maps.Equal(in.State.Encode(), before) {
			t.Fatal("Plan changed its input")
		}
	})
}

func TestEveryInvariantHoldsWithLittleRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		in.Room = full(in.State, rapid.IntRange(-100, 60).Draw(t, "free"))
		if rapid.IntRange(0, 3).Draw(t, "wiped") == 0 {
			in.State, in.Room.All = assignment.State{}, in.Room.Others
		}
		d := Plan(in)
		if d.Next == nil && d.TooLarge != nil {
			return // nothing is written
		}
		for _, check := range invariants {
			check(t, in, d)
		}
		limit := assignment.RepairLimit
		for _, c := range slices.Concat(d.Filled, d.HandOver.Asked) {
			if !slices.Contains(in.lockersOf(c.ID), c.Pod) {
				limit = assignment.SizeLimit
			}
		}
		if d.Next != nil && in.Room.Check(*d.Next, limit) != nil {
			t.Fatalf("%+v does not fit", *d.Next)
		}
		for range len(in.Pods) + 2 { // what was written may have made room: a request that was met, for example
			in.State = after(in, d)
			if d = Plan(in); d.Next == nil {
				return
			}
		}
		t.Fatalf("one plan follows another: %+v", in)
	})
}

// A count that is too high by far costs no time. A look at every slot takes minutes, a plan microseconds.
func TestTwoBillionSlotsArePlannedAtOnce(t *testing.T) {
	in := Input{Me: "b", Count: receipt.MaxID, State: assignment.State{Slots: slots{0: "a"}}, Now: t0}
	in.Pods = []Pod{pod("a", 1).says(receipt.Locks, 0), pod("b", 1)}
	if d := Plan(in); len(d.Filled) != 1 || d.Filled[0] != (Change{ID: 1, Pod: "b"}) {
		t.Errorf("%+v is filled", d.Filled)
	}
}

// These are methods of what a plan tells, and no plan.
func TestHowAskingWent(t *testing.T) {
	asked := HandOver{Asked: []Change{{ID: 2, Pod: "n"}}, Able: 2, UnderWay: 1, Limit: 1}
	if !asked.AskedFor("n") || asked.AskedFor("m") || (HandOver{}).AskedFor("n") {
		t.Error("a slot was asked for another pod than n, or not for n")
	}
	if !asked.Full() || (HandOver{Asked: asked.Asked, Able: 1, UnderWay: 1, Limit: 1}).Full() || (HandOver{Able: 1, Limit: 1}).Full() {
		t.Error("not only the limit keeps the planner from asking, or it does and the plan does not say so")
	}
}
