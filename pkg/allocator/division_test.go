package allocator

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/ownership"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// divided returns an owner whose ids 0 and 1 have two partitions each, and whose user wants what these annotations say.
func divided(annotations map[string]string) store.Owner {
	return store.Owner{
		Ref: store.Ref{Kind: store.Deployment, Name: "d"}, UID: "du", Trust: assignment.Clean, PartitionTrust: assignment.Clean, Wish: assignment.DecodeWish(annotations),
		Record: assignment.Record{State: assignment.State{
			Slots:      assignment.Slots{0: "a", 1: "b"},
			Partitions: &assignment.Partitions{Count: 4, Strategy: placement.NameSticky, Owners: placement.Owners{0: placement.Between(0, 1), 1: placement.Between(2, 3)}},
		}},
	}
}

func TestWhatMakesNoSenseIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        []string // parts; nil: nothing is said
	}{
		"nothing is wanted":   {},
		"what is in force":    {annotations: map[string]string{assignment.PartitionCountKey: "4", assignment.PartitionStrategyKey: "sticky"}},
		"what can be":         {annotations: map[string]string{assignment.PartitionCountKey: "9", assignment.PartitionStrategyKey: "range"}},
		"no number":           {map[string]string{assignment.PartitionCountKey: "many"}, []string{`annotation idalloc.dev/partition-count: not a number: "many": it counts as absent`}},
		"an unknown strategy": {map[string]string{assignment.PartitionStrategyKey: "best"}, []string{"annotation idalloc.dev/partition-strategy: unknown partition strategy", "use one of sticky", ": it changes nothing"}},
		"two of them": {
			map[string]string{assignment.PartitionCountKey: "-1", assignment.PartitionStrategyKey: "best"},
			[]string{"partition-count: -1 partitions", ": it counts as absent; annotation idalloc.dev/partition-strategy"},
		},
	} {
		got := ignored(divided(tc.annotations), placement.Named)
		if (got == "") != (tc.want == nil) {
			t.Errorf("%s: it says %q", name, got)
		}
		for _, part := range tc.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: it says %q, want %q in it", name, got, part)
			}
		}
	}
}

func TestAStrategyInForceThatIsUnknownIsNamed(t *testing.T) {
	o := divided(nil)
	if got := unknownStrategy(o, placement.Named); got != "" {
		t.Errorf("of a known one it says %q", got)
	}
	o.Record.State.Partitions.Strategy = "best"
	if got := unknownStrategy(o, placement.Named); !strings.HasPrefix(got, "strategy best is in force") {
		t.Errorf("it says %q", got)
	}
	o.PartitionTrust = assignment.Foreign
	if got := unknownStrategy(o, placement.Named); got != "" {
		t.Errorf("of one that somebody else wrote it says %q", got)
	}
	o.PartitionTrust, o.Record.State.Partitions = assignment.Absent, nil
	if got := unknownStrategy(o, placement.Named); got != "" {
		t.Errorf("without partitions it says %q", got)
	}
}

func TestOneHolderSpeaksForAll(t *testing.T) {
	speakers := func(o store.Owner) (who []int) {
		for id := range 4 {
			if speaks(o, id) {
				who = append(who, id)
			}
		}
		return who
	}
	o := divided(nil)
	for _, want := range []int{0, 1, 3} {
		if got := speakers(o); !slices.Equal(got, []int{want}) {
			t.Errorf("%v speak, want %d alone", got, want)
		}
		delete(o.Record.State.Slots, want) // the lowest member is gone, and at last all members are
		o.Record.State.Slots[3] = "d"
	}
	o.Record.State.Partitions = nil
	if got := speakers(o); !slices.Equal(got, []int{3}) {
		t.Errorf("before there are members, %v speak, want the lowest of all ids", got)
	}
	clear(o.Record.State.Slots)
	if got := speakers(o); got != nil {
		t.Errorf("%v speak, and nobody has an id", got)
	}
}

func TestWhatIsHeldUpIsToldOnceUntilItChanges(t *testing.T) {
	var h heldUp
	for i, step := range []struct {
		detail string
		want   bool
	}{{"", false}, {"x", true}, {"x", false}, {"y", true}, {"", false}, {"y", true}} {
		if got := h.news(keysIgnored, step.detail); got != step.want {
			t.Errorf("step %d, %q: news %t", i, step.detail, got)
		}
	}
	if !h.news(strategyUnknown, "y") {
		t.Error("of another reason the same detail is no news")
	}
}

// heard keeps what it is told.
type heard []event.Event

// Observe implements event.Observer.
func (h *heard) Observe(e event.Event) { *h = append(*h, e) }

func TestAWriteTellsWhatItChangedAboutPartitions(t *testing.T) {
	at := time.UnixMilli(1795219200123)
	sticky := func(count int) event.Division { return event.Division{Count: count, Strategy: placement.NameSticky} }
	row := func(count int) *assignment.Partitions {
		return &assignment.Partitions{Count: count, Strategy: placement.NameSticky}
	}
	locks := placement.Between(0, 1)
	using := []plan.Pod{{Name: "a", Receipt: &assignment.Receipt{Partitions: &locks}}}
	about := divided(nil).About()
	for name, tc := range map[string]struct {
		change   func(*store.Owner)
		live     []plan.Pod
		next     *assignment.Partitions
		decision ownership.Decision
		want     heard
	}{
		"nothing":       {next: row(9)},
		"another count": {next: row(9), decision: ownership.Decision{Changed: true}, want: heard{event.PartitionsInForce{About: about, Old: sticky(4), New: sticky(9)}}},
		"the end":       {decision: ownership.Decision{Changed: true}, want: heard{event.PartitionsInForce{About: about, Old: sticky(4)}}},
		"the beginning": {
			change: func(o *store.Owner) { o.PartitionTrust, o.Record.State.Partitions = assignment.Absent, nil },
			next:   row(4), decision: ownership.Decision{Changed: true}, want: heard{event.PartitionsInForce{About: about, New: sticky(4)}},
		},
		"moves": {
			next: row(4),
			decision: ownership.Decision{
				Changed: true, Gained: []ownership.Change{{ID: 1, Set: placement.Between(0, 1)}}, Lost: []ownership.Change{{ID: 0, Set: placement.Of(1)}},
			},
			want: heard{event.PartitionsMoved{Epoch: 7, Given: 2, Taken: 1}},
		},
		"a fail-over": {
			next: row(4),
			decision: ownership.Decision{
				Changed: true, Gained: []ownership.Change{{ID: 1, Set: placement.Of(1)}, {ID: 2, Set: placement.Of(3)}, {ID: 3, Set: placement.Of(0, 5)}},
				Lost: []ownership.Change{{ID: 0, Set: placement.Between(0, 1)}}, FailedOver: []ownership.Change{{ID: 0, Set: placement.Between(0, 1)}},
			},
			want: heard{
				event.PartitionsMoved{Epoch: 7, Given: 4, Taken: 2},
				event.FailedOver{About: about, From: []event.Failover{{ID: 0, Partitions: "0-1", To: []int{1, 3}, After: 31 * time.Second}}},
			},
		},
		"what somebody else changed": {
			change: func(o *store.Owner) {
				o.PartitionTrust, o.PartitionWriters = assignment.Foreign, []store.Writer{{Manager: "helm", Operation: "Update", Keys: []string{assignment.PartitionOwnersKey}}}
				o.Annotations = map[string]string{assignment.PartitionOwnersKey: "x", assignment.PartitionSealKey: "x"}
			},
			next: row(9), decision: ownership.Decision{Changed: true},
			want: heard{event.Damaged{
				About: about, Reason: "PartitionsChanged",
				Detail: `annotation idalloc.dev/partition-owners was set by field manager "helm" (Update): the owners of the partitions were restored from the pods' receipts`,
			}},
		},
		"what somebody else damaged": {
			change: func(o *store.Owner) {
				o.PartitionTrust, o.Record.Partitions.Problems = assignment.Foreign, []assignment.ProblemError{{Key: assignment.PartitionOwnersKey, Detail: "x"}}
				o.Annotations = map[string]string{assignment.PartitionOwnersKey: "x"}
			},
			next: row(4), decision: ownership.Decision{Changed: true},
			want: heard{event.Damaged{
				About: about, Reason: "PartitionsDamaged",
				Detail: "annotation idalloc.dev/partition-owners: x (annotation idalloc.dev/partition-seal was removed by somebody whom metadata.managedFields do not name): restored from the pods' receipts",
			}},
		},
		"what somebody else removed": {
			change: func(o *store.Owner) { o.PartitionTrust, o.Record.State.Partitions = assignment.Absent, nil },
			live:   using, next: row(4), decision: ownership.Decision{Changed: true},
			want: heard{event.Damaged{
				About: about, Reason: "PartitionsChanged",
				Detail: "annotations idalloc.dev/partition-owners and idalloc.dev/partition-seal were removed by somebody whom metadata.managedFields do not name: " +
					"the owners of the partitions were restored from the pods' receipts",
			}},
		},
		"what an undo brought back, which is told of the slots": {
			change: func(o *store.Owner) {
				o.Trust, o.PartitionTrust, o.Writers = assignment.Foreign, assignment.Foreign, []store.Writer{{Manager: "kubectl", Operation: "Update"}}
			},
			next: row(4), decision: ownership.Decision{Changed: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := divided(nil)
			if tc.change != nil {
				tc.change(&o)
			}
			var got heard
			a := &Allocator{connection: connection{clock: testclock.NewFakeClock(at), happened: event.Observers{&got}}}
			a.vacancies.since = map[int]time.Time{0: at.Add(-31 * time.Second)}
			a.tellDivision(o, plan.Decision{Next: &assignment.State{Epoch: 7, Partitions: tc.next}, Partitions: tc.decision}, gc.Census{Live: tc.live})
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("it tells\n%+v\nwant\n%+v", got, tc.want)
			}
		})
	}
}

func TestAPlanTellsWhyPartitionsStay(t *testing.T) {
	var got heard
	a := &Allocator{connection: connection{happened: event.Observers{&got}}}
	large := plan.Decision{PartitionsTooLarge: &assignment.TooLargeError{Size: 9}, Partitions: ownership.Decision{}}
	for _, d := range []plan.Decision{large, large, {}, large, {Partitions: ownership.Decision{Withheld: true}}} {
		a.tellHeldUp(divided(nil), d)
	}
	reasons := make([]string, 0, len(got))
	for _, e := range got {
		if h, is := e.(event.PartitionsHeldUp); is && h.Detail != "" {
			reasons = append(reasons, h.Reason)
		}
	}
	if want := []string{partitionsLarge, partitionsLarge, partitionsWithheld}; !slices.Equal(reasons, want) || len(got) != len(want) {
		t.Errorf("it tells %q, want %q", reasons, want)
	}
}
