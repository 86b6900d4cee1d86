package allocator

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// sharingPod returns a process of pod "a" that works on partitions.
func sharingPod() *Allocator {
	a := &Allocator{o: Options{Pod: "a", DiesWithProcess: true}}
	a.pod = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "0b7d7f3e-1"}}
	a.connection = connection{clock: testclock.NewFakeClock(time.UnixMilli(1795219200123))}
	a.server = &a.connection
	a.shares = shares{on: &Partitions{Publish: func(Shares) {}}}
	return a
}

// owning returns a clean owner of two slots that gives slot 0 to pod "a", with these owners of four partitions.
func owning(owners placement.Owners) store.Owner {
	o := store.Owner{Count: 2, Trust: assignment.Clean, PartitionTrust: assignment.Clean}
	o.Record.State = assignment.State{
		Slots: assignment.Slots{0: "a", 1: "b"}, UIDs: assignment.Slots{0: assignment.ShortUID("0b7d7f3e-1")}, Epoch: 9,
		Partitions: &assignment.Partitions{Count: 4, Strategy: placement.NameSticky, Owners: owners},
	}
	return o
}

// Somebody removed the receipt while work on partitions 2 and 3 was being stopped for another id. That work goes on for a while after the
// id was withdrawn, so the next take locks them again: what is locked is yielded only after its work has stopped.
func TestATakeLocksWhatWorkGoesOnOn(t *testing.T) {
	a := sharingPod()
	owner := owning(placement.Owners{0: placement.Between(0, 3), 1: {}})
	a.shares.id = 0
	a.shares.add(placement.Between(0, 3), owner.Record.State)
	a.shares.drop()
	r := assignment.Receipt{ID: 0}
	a.withShares(&r, nil, owner)
	if want := placement.Between(0, 3); r.Partitions == nil || !r.Partitions.Equal(want) {
		t.Fatalf("the receipt locks %v instead of %s", r.Partitions, want)
	}
	a.pod.Annotations = map[string]string{assignment.ReceiptKey: `{"uid":"0b7d7f3e-1","owner":"","id":0,"epoch":9,"partitions":"0-3"}`}
	owner = owning(placement.Owners{0: placement.Between(0, 1), 1: placement.Between(2, 3)})
	if _, kept := a.confirmShares(owner, 0, nil); !kept.Equal(placement.Between(0, 3)) {
		t.Errorf("%s stay locked, and work goes on on 2 and 3", kept)
	}
	a.shares.forget() // the work has stopped
	a.shares.on.InProcess = true
	r = assignment.Receipt{ID: 0}
	a.withShares(&r, nil, owning(placement.Owners{0: placement.Between(0, 3), 1: {}}))
	if want := placement.Between(0, 1); !r.Partitions.Equal(want) {
		t.Errorf("the receipt locks %s instead of %s", r.Partitions, want)
	}
}

// An earlier process may have said that it yields the others, and a planner that saw that may be about to give them away.
func TestAProcessThatFindsNoReceiptLocksWhatItsFilesSay(t *testing.T) {
	owner := owning(placement.Owners{0: placement.Between(0, 3), 1: {}})
	for name, before := range map[string]*assignment.Receipt{"it finds no receipt": nil, "it has waited": {Waits: true}} {
		a := sharingPod()
		a.shares.left = placement.Of(3)
		r := assignment.Receipt{ID: 0}
		if a.withShares(&r, before, owner); r.Partitions.String() != "0-1,3" {
			t.Errorf("%s: the files show 3, the target is 0-1, and the receipt locks %s", name, r.Partitions)
		}
		a = sharingPod()
		if a.withShares(&r, before, owner); r.Partitions.String() != "0-1" {
			t.Errorf("%s: there are no files, the target is 0-1, and the receipt locks %s", name, r.Partitions)
		}
	}
}

// A change of the number of partitions is news, also for a process whose own stay the same. What an unclean map says is none.
func TestTheNumberOfPartitionsIsPublishedWhenItChanges(t *testing.T) {
	var published []int
	h := &holding{Allocator: sharingPod()}
	h.shares.on.Publish = func(now Shares) { published = append(published, now.Count) }
	owner := owning(placement.Owners{0: placement.Between(0, 1), 1: placement.Between(2, 3)})
	for _, count := range []int{4, 4, 6, 8} {
		row := *owner.Record.State.Partitions
		row.Count = count
		owner.Record.State.Partitions = &row
		if count == 8 {
			owner.PartitionTrust = assignment.Foreign
		}
		h.held = &held{view: owner}
		h.publishShares()
	}
	if !slices.Equal(published, []int{4, 6}) {
		t.Errorf("published %v", published)
	}
}

// A take may be confirmed when the number of partitions is lower than it was when the take began: the map names what is beyond until it is
// yielded. No function is to be called with a number that its count does not cover.
func TestWhatIsBeyondTheNumberIsNotBegun(t *testing.T) {
	var published Shares
	h := &holding{Allocator: sharingPod()}
	h.shares.on.Publish = func(now Shares) { published = now }
	owner := owning(placement.Owners{0: placement.Between(0, 3), 1: {}})
	for _, c := range []struct {
		count    int
		stopping string
	}{{4, ""}, {2, "2-3"}, {0, "0-3"}, {4, ""}} {
		row := *owner.Record.State.Partitions
		row.Count = c.count
		owner.Record.State.Partitions = &row
		h.held = &held{view: owner}
		h.shares.add(placement.Between(0, 3), owner.Record.State)
		h.publishShares()
		if published.Count != c.count || published.Stopping.String() != c.stopping {
			t.Errorf("of 0-3, %q are stopping with %d partitions, not %q", published.Stopping, published.Count, c.stopping)
		}
	}
}

// Ids that this process saw without a holder may have had one since it stopped holding an id itself.
func TestOnlyAHolderKnowsWhichIDsHaveNone(t *testing.T) {
	a := sharingPod()
	clk := testclock.NewFakeClock(time.UnixMilli(1795219200123))
	a.connection = connection{clock: clk}
	a.vacancies.gone(1, "b", "", clk.Now())
	clk.Step(time.Minute)
	owner := owning(placement.Owners{0: placement.Between(0, 1), 1: placement.Between(2, 3)})
	owner.Wish.FailoverAfter = 30 * time.Second
	if vacant := a.input(owner, nil, plan.Claim).Partitions.Vacant; len(vacant) > 0 {
		t.Errorf("a waiter takes %v for vacant", vacant)
	}
	a.held = &held{view: owner}
	if vacant := a.input(owner, nil, plan.Claim).Partitions.Vacant; !vacant[1] {
		t.Error("a holder does not know that id 1 is vacant")
	}
}

// The streams of this process stood still while the id got another holder. The read before the plan shows that one, dead or alive.
func TestAnIDThatHadAHolderMeanwhileIsVacantOnlyFromThenOn(t *testing.T) {
	a := sharingPod()
	clk := testclock.NewFakeClock(time.UnixMilli(1795219200123))
	a.connection = connection{clock: clk}
	owner := owning(placement.Owners{0: placement.Between(0, 1), 1: placement.Between(2, 3)})
	owner.Wish.FailoverAfter = 30 * time.Second
	a.held = &held{view: owner}
	a.vacancies.gone(1, "b", "", clk.Now())
	clk.Step(time.Minute)
	owner.Record.State.Slots = assignment.Slots{0: "a", 1: "c"}
	if vacant := a.input(owner, nil, plan.Claim).Partitions.Vacant; vacant[1] {
		t.Error("the holder of before counts")
	}
}

// The program gets what it may work on, in the order of the partitions, when that has changed and only then.
func TestWhatAProcessWorksOnIsPublishedWhenItChanges(t *testing.T) {
	var told []Shares
	s := &shares{on: &Partitions{Publish: func(now Shares) { told = append(told, now) }}, number: 3}
	by := func(epoch int64) assignment.State {
		return assignment.State{Epoch: epoch, Partitions: &assignment.Partitions{Count: 8}}
	}
	id := identity.Identity{ID: 1}
	s.add(placement.Between(4, 5), by(7))
	s.add(placement.Between(0, 1), by(9))
	s.tell(id)
	s.add(placement.Of(4), by(11)) // it has it
	s.tell(id)
	s.remove(placement.Between(0, 4))
	s.tell(id)
	s.remove(placement.Of(5))
	s.tell(id)
	s.hush(id)
	s.tell(id)
	of := func(set placement.Set, token int64) Share { return Share{Set: set, Token: token} }
	want := []Shares{
		{Count: 8, Owned: []Share{of(placement.Between(0, 1), 9), of(placement.Between(4, 5), 7)}},
		{Count: 8, Owned: []Share{of(placement.Of(5), 7)}}, {Count: 8}, {}, {Count: 8},
	}
	if len(told) != len(want) {
		t.Fatalf("it publishes\n%+v\nwant\n%+v", told, want)
	}
	for i, w := range want {
		same := func(a, b Share) bool { return a.Set.Equal(b.Set) && a.Token == b.Token }
		if got := told[i]; got.Count != w.Count || !slices.EqualFunc(got.Owned, w.Owned, same) || got.Identity != id || got.Stop != 3 {
			t.Errorf("%d: it publishes\n%+v\nwant\n%+v", i, got, w)
		}
	}
	if without := (&shares{}); without.tell(id) {
		t.Error("a process that works on no partitions publishes some")
	}
}

// A process may work on what a moment of the owner after its receipt confirms. Work of the process before it may go on on more.
func TestATakeConfirmsWhatTheOwnerStillGives(t *testing.T) {
	mine, earlier := placement.Between(0, 1), placement.Between(0, 2)
	others := owning(placement.Owners{0: mine, 1: {}})
	others.Record.State.Slots[0] = "c"
	damaged := owning(placement.Owners{0: mine, 1: {}})
	damaged.PartitionTrust = assignment.Foreign
	for name, tc := range map[string]struct {
		change          func(*Allocator)
		now             store.Owner
		before          *assignment.Receipt
		confirmed, kept placement.Set
	}{
		"nothing changed":                    {now: owning(placement.Owners{0: mine, 1: {}}), confirmed: mine, kept: mine},
		"one is another id's now":            {now: owning(placement.Owners{0: placement.Of(0), 1: placement.Of(1)}), confirmed: placement.Of(0), kept: placement.Of(0)},
		"the id is another pod's now":        {now: others},
		"somebody else changed the owners":   {now: damaged},
		"one is yielded":                     {now: owning(placement.Owners{0: mine, 1: {}}), change: func(a *Allocator) { a.shares.yielded = placement.Of(1) }, confirmed: placement.Of(0), kept: placement.Of(0)},
		"a process before it had the id":     {now: owning(placement.Owners{0: mine, 1: {}}), before: &assignment.Receipt{ID: 0, Partitions: &earlier}, confirmed: mine, kept: earlier},
		"and its work ended with it":         {now: owning(placement.Owners{0: mine, 1: {}}), change: func(a *Allocator) { a.shares.on.InProcess = true }, before: &assignment.Receipt{ID: 0, Partitions: &earlier}, confirmed: mine, kept: mine},
		"a process before it had another id": {now: owning(placement.Owners{0: mine, 1: {}}), before: &assignment.Receipt{ID: 1, Partitions: &earlier}, confirmed: mine, kept: mine},
		"a process before it gave the id":    {now: owning(placement.Owners{0: mine, 1: {}}), before: &assignment.Receipt{ID: 0, GaveUp: true, Gives: true, Partitions: &earlier}, confirmed: mine, kept: mine},
		"it works on no partitions":          {now: owning(placement.Owners{0: mine, 1: {}}), change: func(a *Allocator) { a.shares.on = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			a := sharingPod()
			four := placement.Between(0, 3)
			own := assignment.Receipt{UID: string(a.pod.UID), Owner: a.ref.String(), Epoch: 9, Partitions: &four}
			a.pod.Annotations = map[string]string{assignment.ReceiptKey: own.Encode()}
			if tc.change != nil {
				tc.change(a)
			}
			confirmed, kept := a.confirmShares(tc.now, 0, tc.before)
			if !confirmed.Equal(tc.confirmed) || !kept.Equal(tc.kept) {
				t.Errorf("%q are confirmed and %q stay locked, want %q and %q", confirmed, kept, tc.confirmed, tc.kept)
			}
		})
	}
}

// What a process yielded is about the id that it had.
func TestWhatIsYieldedBelongsToTheID(t *testing.T) {
	a := sharingPod()
	a.shares.yielded = placement.Of(1)
	owner := owning(placement.Owners{0: placement.Between(0, 3), 1: placement.Between(0, 3)})
	owner.Record.State.Slots[1], owner.Record.State.UIDs[1] = "a", assignment.ShortUID("0b7d7f3e-1")
	for _, tc := range []struct {
		id   int
		want string
	}{{0, "1"}, {1, ""}} {
		r := assignment.Receipt{ID: tc.id}
		if a.withShares(&r, nil, owner); r.Yields.String() != tc.want {
			t.Errorf("with id %d it yields %q, want %q", tc.id, r.Yields, tc.want)
		}
	}
}
