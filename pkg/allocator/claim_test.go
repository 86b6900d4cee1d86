package allocator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// A planner that saw the receipt of a strict process may take the pod for lost, and a process that does not fence itself would not stop.
func TestWhoIsNotStrictFollowsAStrictProcessByAWriteOfItsOwn(t *testing.T) {
	const strict = 30 * time.Second
	lock, strictLock := assignment.Receipt{ID: 1}, assignment.Receipt{ID: 1, FenceAfter: strict}
	for name, tc := range map[string]struct {
		fenceAfter                 time.Duration
		before                     *assignment.Receipt
		terminating                bool
		followsStrict, writesFirst bool
	}{
		"a new pod":                               {},
		"its own lock":                            {before: &lock},
		"a strict process's lock":                 {before: &strictLock, followsStrict: true},
		"strict itself":                           {fenceAfter: strict, before: &strictLock},
		"strict, with a shorter fence-after":      {fenceAfter: time.Second, before: &strictLock},
		"strict, and before it nobody was":        {fenceAfter: strict, before: &lock},
		"it gave its slot up":                     {before: &assignment.Receipt{GaveUp: true}, writesFirst: true},
		"its pod is being deleted":                {terminating: true, writesFirst: true},
		"its pod is being deleted, and it strict": {fenceAfter: strict, terminating: true},
	} {
		a := &Allocator{o: Options{FenceAfter: tc.fenceAfter}}
		a.server, a.pod = &a.connection, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		if r := tc.before; r != nil {
			own := *r
			own.UID, own.Owner = "u", a.ref.String()
			a.pod.Annotations = map[string]string{assignment.ReceiptKey: own.Encode()}
		}
		if tc.terminating {
			a.pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(100, 0)}
		}
		c := &claimer{Allocator: a}
		if got := c.followsStrict(); got != tc.followsStrict {
			t.Errorf("%s: gives the slot up first: %t", name, got)
		}
		if got := c.writesFirst(store.Owner{}); got != tc.writesFirst {
			t.Errorf("%s: takes only from a write of its own: %t", name, got)
		}
	}
}

// Such a process takes all that its id owns. A planner that saw a receipt, which somebody has removed, may be about to move some of that.
func TestWhoDoesNotKnowTheStrategyTakesByAWriteOfItsOwn(t *testing.T) {
	none := placement.Set{}
	own := func(placement.Input) placement.Owners { return nil }
	for name, tc := range map[string]struct {
		before      *assignment.Receipt
		on          *Partitions
		foreign     bool
		writesFirst bool
	}{
		"a new pod":                           {on: &Partitions{}, writesFirst: true},
		"the receipt says what it yields":     {on: &Partitions{}, before: &assignment.Receipt{ID: 0, Partitions: &none}},
		"it waited":                           {on: &Partitions{}, before: &assignment.Receipt{Waits: true}, writesFirst: true},
		"its program knows the strategy":      {on: &Partitions{Strategies: map[string]placement.Strategy{"mine": own}}},
		"it works on no partitions":           {},
		"somebody else wrote the partitions'": {on: &Partitions{}, foreign: true},
	} {
		a := &Allocator{}
		a.server, a.pod = &a.connection, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		if r := tc.before; r != nil {
			r.UID, r.Owner = "u", a.ref.String()
			a.pod.Annotations = map[string]string{assignment.ReceiptKey: r.Encode()}
		}
		a.shares.on = tc.on
		owner := owning(placement.Owners{0: placement.Between(0, 3)})
		owner.Record.State.Partitions.Strategy = "mine"
		if tc.foreign {
			owner.PartitionTrust = assignment.Foreign
		}
		if got := a.writesFirst(owner); got != tc.writesFirst {
			t.Errorf("%s: takes only from a write of its own: %t", name, got)
		}
	}
}
