package duty_test

import (
	"fmt"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// share is slot 1 with these partitions.
func share(partitions ...int) duty.Share {
	return duty.Share{ID: 1, Divides: true, Partitions: placement.Of(partitions...)}
}

func locks(s duty.Share) duty.Lock { return duty.Lock{State: duty.Locks, Share: s} }

func waits() duty.Lock { return duty.Lock{State: duty.Waits, Share: duty.Nothing()} }

func gaveUp() duty.Lock { return duty.Lock{State: duty.GaveUp, Share: duty.Nothing()} }

// holds is the tenure of a process that works on all that its receipt locks.
func holds(s duty.Share) duty.Tenure {
	return duty.Tenure{Known: true, Lock: locks(s), Renewed: true, Listed: true, Working: s, Keep: duty.Nothing()}
}

func with(t duty.Tenure, change func(*duty.Tenure)) duty.Tenure {
	change(&t)
	return t
}

func TestNext(t *testing.T) {
	none := duty.Wish{Propose: duty.Nothing()}
	proposed := func(s duty.Share) duty.Wish { return duty.Wish{Propose: s} }
	idle := duty.Tenure{Known: true, Lock: waits(), Working: duty.Nothing(), Keep: duty.Nothing()}
	resumed := duty.Tenure{Known: true, Lock: locks(share(4)), Working: share(4), Keep: duty.Nothing(), Doubts: true}
	for name, c := range map[string]struct {
		tenure duty.Tenure
		wish   duty.Wish
		want   duty.Duty
	}{
		"it does not know its receipt": {
			with(idle, func(t *duty.Tenure) { t.Known = false }), proposed(share()), duty.Duty{Do: duty.Read},
		},
		"an earlier process may have left work anywhere": {
			with(idle, func(t *duty.Tenure) { t.Lock.State, t.Unsure = duty.None, true }), none, duty.Duty{Do: duty.Stop, Share: duty.Nothing()},
		},
		"it has no receipt": {
			with(idle, func(t *duty.Tenure) { t.Lock.State = duty.None }), none, duty.Duty{Do: duty.Write, Lock: waits()},
		},
		"a slot is proposed to a waiter": {
			idle, proposed(share(4)), duty.Duty{Do: duty.Write, Lock: locks(share(4))},
		},
		"nothing is proposed to a waiter": {idle, none, duty.Duty{Do: duty.Rest}},
		"a slot is proposed to a pod that gave its slot up": {
			with(idle, func(t *duty.Tenure) { t.Lock = gaveUp() }), proposed(share()), duty.Duty{Do: duty.Rest},
		},
		"a pod that gave its slot up may wait again": {
			with(idle, func(t *duty.Tenure) { t.Lock = gaveUp() }), duty.Wish{Propose: duty.Nothing(), WaitAgain: true}, duty.Duty{Do: duty.Write, Lock: waits()},
		},
		"its receipt is written, and the others are not listed": {
			with(holds(share()), func(t *duty.Tenure) { t.Listed, t.Working = false, duty.Nothing() }), none, duty.Duty{Do: duty.List},
		},
		"nobody else locks what it locks": {
			with(holds(share(4)), func(t *duty.Tenure) { t.Working = duty.Nothing() }), none, duty.Duty{Do: duty.Begin, Share: share(4)},
		},
		"another pod locks the slot": {
			with(holds(share()), func(t *duty.Tenure) { t.Working, t.Others.Slot = duty.Nothing(), true }), none, duty.Duty{Do: duty.Write, Lock: waits()},
		},
		"another pod locks one of the partitions": {
			with(holds(share(4, 5)), func(t *duty.Tenure) { t.Working, t.Others.Partitions = share(4), placement.Of(5) }), none,
			duty.Duty{Do: duty.Write, Lock: locks(share(4))},
		},
		"it works, and nothing is wanted of it":             {holds(share(4)), proposed(share(4)), duty.Duty{Do: duty.Rest}},
		"it works, and the map proposes the slot to others": {holds(share(4)), none, duty.Duty{Do: duty.Rest}},
		"more partitions are proposed": {
			holds(share(4)), proposed(share(4, 5)), duty.Duty{Do: duty.Write, Lock: locks(share(4, 5))},
		},
		"a partition goes to another id, and its work has not stopped": {
			holds(share(4, 5)), duty.Wish{Propose: share(4, 5), Yield: placement.Of(5)}, duty.Duty{Do: duty.Stop, Share: share(4)},
		},
		"a partition goes to another id, and its work has stopped": {
			with(holds(share(4, 5)), func(t *duty.Tenure) { t.Working = share(4) }), duty.Wish{Propose: share(4, 5), Yield: placement.Of(5)},
			duty.Duty{Do: duty.Write, Lock: locks(share(4))},
		},
		"what went to another id is proposed still": {
			holds(share(4)), duty.Wish{Propose: share(4, 5), Yield: placement.Of(5)}, duty.Duty{Do: duty.Rest},
		},
		"the user wants no partitions any more": {
			holds(share(4)), proposed(duty.Share{ID: 1}), duty.Duty{Do: duty.Stop, Share: duty.Share{ID: 1}},
		},
		"it is to give, and its work has not stopped": {
			holds(share(4)), duty.Wish{Give: true, Propose: share(4)}, duty.Duty{Do: duty.Stop, Share: duty.Nothing()},
		},
		"it is to give, and its work is stopping": {
			with(holds(share()), func(t *duty.Tenure) { t.Stopping = true }), duty.Wish{Give: true, Propose: duty.Nothing()}, duty.Duty{Do: duty.Rest},
		},
		"it is to give, and its work has stopped": {
			with(holds(share()), func(t *duty.Tenure) { t.Working = duty.Nothing() }), duty.Wish{Give: true, Propose: duty.Nothing()}, duty.Duty{Do: duty.Write, Lock: gaveUp()},
		},
		"the request is taken back after its work has stopped": {
			with(holds(share()), func(t *duty.Tenure) { t.Working = duty.Nothing() }), none, duty.Duty{Do: duty.Begin, Share: share()},
		},
		"an earlier process left a lock": {resumed, none, duty.Duty{Do: duty.Write, Lock: locks(share(4))}},
		"it resumes, and another pod's receipt may be withdrawn": {
			with(resumed, func(t *duty.Tenure) { t.Renewed, t.Listed, t.Others.Slot = true, true, true }), none, duty.Duty{Do: duty.List},
		},
		"it resumes, and another pod's receipt stays": {
			with(resumed, func(t *duty.Tenure) { t.Renewed, t.Listed, t.Doubts, t.Others.Slot = true, true, false, true }), none,
			duty.Duty{Do: duty.Stop, Share: duty.Nothing()},
		},
		"somebody removed its receipt while it works": {
			with(holds(share(4)), func(t *duty.Tenure) { t.Lock = duty.Lock{Share: duty.Nothing()} }), none, duty.Duty{Do: duty.Stop, Share: duty.Nothing()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := duty.Next(c.tenure, c.wish); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("next is %v, want %v", got, c.want)
			}
		})
	}
}
