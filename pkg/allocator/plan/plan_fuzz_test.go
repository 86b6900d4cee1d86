package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// script reads decisions from a fuzzer's bytes; when they are used up, every decision is the first one.
type script []byte

// below returns a number in [0, n), n at most 256.
func (s *script) below(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := int((*s)[0])
	*s = (*s)[1:]
	return b % n
}

func (s *script) yes() bool { return s.below(2) == 1 }

// input returns an owner and pods in any state that the readers of the stored annotations let through.
// What they rule out is ruled out here: a name twice in one map, an id out of range, epochs of another
// day. Me is alive, and has said so on its receipt when it gives.
func (s *script) input() Input {
	const pods, ids = 14, 20
	count, clean, replaced := s.below(ids), s.yes(), s.yes()
	in := Input{
		Count: count, Trust: trustIf(clean), NeedsWrite: s.yes(), TakeReserved: s.yes(),
		Intent: Intent(s.below(3)), Now: t0, Me: podName(0),
		Rollout: Rollout{Current: s.yes(), MaxUnavailable: s.below(5), Available: s.below(5)},
		Served:  map[int64]bool{1: s.yes(), 2: s.yes()}, Ended: map[int]bool{},
	}
	if in.Trust != assignment.Clean && s.yes() {
		in.Trust = assignment.Untracked
	}
	in.FenceAfter = s.fenceAfter()
	in.State = assignment.State{Slots: slots{}, UIDs: slots{}, Handover: slots{}, Epoch: s.epoch(), FenceAfter: s.fenceAfter()}
	for i := range pods {
		s.place(&in, in.State.Slots, i, replaced)
		s.place(&in, in.State.Handover, i, replaced)
		if i == 0 || s.yes() {
			in.Pods = append(in.Pods, s.pod(i, ids))
		}
	}
	for id := range ids {
		in.Ended[id] = s.yes()
		if _, taken := in.State.Slots[id]; !taken && s.yes() {
			in.State.Quarantine = in.State.Quarantine.With(id, id+s.below(3), int64(1+s.below(2)))
		}
	}
	in.State.Quarantine = in.State.Quarantine.Without(in.State.Slots.IDs(), nil)
	if in.Intent != Claim {
		gaveUp(&in.Pods[0])
	}
	return in
}

// place may give pod i a slot in m that is not taken there. If pods were replaced, it may have been an earlier one of its name.
func (s *script) place(in *Input, m slots, i int, replaced bool) {
	id := s.below(40)
	if _, taken := m[id]; taken || id >= 20 {
		return
	}
	m[id] = podName(i)
	if _, holder := in.State.Slots[id]; holder {
		in.State.UIDs[id] = "uid-" + in.State.Slots[id]
		if replaced && s.yes() {
			in.State.UIDs[id] = "old"
		}
	}
}

func podName(i int) string { return fmt.Sprintf("p%02d", i) }

func (s *script) pod(i, ids int) Pod {
	p := pod(podName(i), s.below(4))
	p.Controller = []string{"rs-1", "rs-2", "rs-3"}[s.below(3)]
	p.Owned, p.Terminating, p.Ordinal = !s.yes(), s.yes(), NoOrdinal
	if s.yes() {
		p.Ordinal = s.below(ids)
	}
	p.Deadline = t0.Add(time.Duration(s.below(3)-1) * time.Second)
	switch s.below(3) {
	case 1:
		gaveUp(&p)
	case 2:
		holdsSince(s.below(ids), s.epoch())(&p)
		p.Receipt.HandsOver = s.yes()
		p.Receipt.FenceAfter = s.fenceAfter()
		if s.below(8) == 1 {
			p.Receipt.FenceAfter = -1 // unreadable
		}
	}
	return p
}

// epoch returns one that is old, or, as after a clock that was ahead, newer than now. 0 is unreadable.
func (s *script) epoch() int64 {
	n := int64(s.below(256))
	if s.yes() {
		return t0.Add(assignment.MaxAhead).UnixMilli() - n
	}
	return n
}

func (s *script) fenceAfter() time.Duration {
	return []time.Duration{0, 0, time.Nanosecond, 30 * time.Second, assignment.MaxFenceAfter}[s.below(5)]
}

func invariants() []invariant {
	return []invariant{
		neverTwoIDsForAPod, aLockedSlotIsGivenToNobodyElse, whoLocksASlotGetsNoOther, aLivePodsEntryIsNeverTaken, receiptsAreTheAssignmentOfAMapThatIsNotClean,
		planningAgainChangesNothing, everyFreeSlotIsGivenWhileASiblingWaits, onlyDeadOrOwnEntriesMove, epochGrows,
		aPodThatMayNeverStartTakesNothingFromOneThatRuns,
		requestsAreFewAndMeetable, aQuarantinedSlotIsGivenToNobody, strictModeIsWrittenDown,
	}
}

// Whatever the owner and the pods look like, a plan keeps every invariant of the property tests, is the
// same for the same input in any order, and leaves its input alone.
func FuzzPlan(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		s := script(data)
		in := s.input()
		before := in.State.Clone()
		d := Plan(in)
		if !in.State.SameContent(before) {
			t.Fatalf("Plan changed its input %+v", in)
		}
		for _, check := range invariants() {
			check(t, in, d)
		}
		reversed := in
		reversed.Pods = slices.Clone(in.Pods)
		slices.Reverse(reversed.Pods)
		if again := Plan(reversed); !reflect.DeepEqual(d, again) {
			t.Fatalf("one input, two plans: %+v and %+v", d, again)
		}
		if d.Next == nil {
			return
		}
		// What is planned can be stored and read back.
		r := assignment.Decode(d.Next.Encode(assignment.DefaultKey, "owner"), assignment.DefaultKey, "owner", in.Now.Add(time.Hour))
		if !r.Sealed || len(r.Problems) > 0 || !r.State.SameContent(*d.Next) || r.State.Epoch != d.Next.Epoch {
			t.Fatalf("the plan %+v is read as %+v", *d.Next, r)
		}
	})
}
