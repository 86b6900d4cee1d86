package allocator

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// noon is the wall clock's time. Epochs are before it.
var noon = time.UnixMilli(1795219200000) //nolint:gochecknoglobals // a constant

func quarantined(epochs ...int64) assignment.State {
	var s assignment.State
	for i, epoch := range epochs {
		s.Quarantine = s.Quarantine.With(2*i, 2*i, epoch)
	}
	return s
}

func servedEpochs(q *quarantines, length time.Duration) []int64 {
	return slices.Sorted(maps.Keys(q.served(length)))
}

func TestQuarantinesCountFromTheFirstSight(t *testing.T) {
	const length = 10 * time.Second
	c := &handClock{at: time.Hour}
	q := &quarantines{now: c.now}
	if _, ok := q.next(length); ok || len(q.served(length)) > 0 {
		t.Error("there is a quarantine before one was seen")
	}
	// The epoch is a wall clock's; however old it is, nothing is served before it was watched long enough.
	q.note(quarantined(1), noon)
	if got := servedEpochs(q, length); len(got) > 0 {
		t.Errorf("%v served at first sight", got)
	}
	c.at += 4 * time.Second
	q.note(quarantined(1, 5), noon)
	if in, ok := q.next(length); !ok || in != 6*time.Second {
		t.Errorf("the next ends in %s, %t, want 6s", in, ok)
	}
	c.at += 6*time.Second - 1
	if got := servedEpochs(q, length); len(got) > 0 {
		t.Errorf("%v served before the time", got)
	}
	c.at++
	if got := servedEpochs(q, length); !slices.Equal(got, []int64{1}) {
		t.Errorf("served: %v, want 1 alone", got)
	}
	if in, ok := q.next(length); !ok || in != 4*time.Second {
		t.Errorf("the next ends in %s, %t, want 4s", in, ok)
	}
	if got := servedEpochs(q, 2*length); len(got) > 0 {
		t.Errorf("%v served although somebody has a longer fence-after now", got)
	}
}

func TestTheNextQuarantineIsTheOneThatEndsFirst(t *testing.T) {
	c := &handClock{at: time.Hour}
	q := &quarantines{now: c.now}
	epochs := make([]int64, 0, 20)
	for epoch := range int64(20) {
		epochs = append(epochs, epoch+1)
		q.note(quarantined(epochs...), noon)
		c.at += time.Second
	}
	if in, ok := q.next(time.Minute); !ok || in != 40*time.Second {
		t.Errorf("the next ends in %s, %t, want 40s", in, ok)
	}
}

// A waiter that slept after such a plan would not wake up for the slot.
func TestAQuarantineThatEndsWhileAPlanIsMadeIsNotMissed(t *testing.T) {
	const length = 10 * time.Second
	c := &handClock{at: time.Hour}
	q := &quarantines{now: c.now}
	q.note(quarantined(1, 5), noon)
	c.at += length - time.Millisecond
	q.served(length) // by a plan that takes longer than a millisecond
	c.at += 2 * time.Millisecond
	if in, ok := q.next(length); !ok || in != 0 {
		t.Errorf("the next ends in %s, %t, want at once", in, ok)
	}
	if got := servedEpochs(q, length); !slices.Equal(got, []int64{1, 5}) {
		t.Errorf("served: %v, want both", got)
	}
	if in, ok := q.next(length); ok {
		t.Errorf("the next ends in %s, although the last plan took both for over", in)
	}
}

// A waiter may hear of a quarantine from its watch alone, after it went to sleep. It has to count it from then, and to wake up when it is
// over: a pod that stands back for it takes the slot 10 s later.
func TestAWaiterWakesUpForAQuarantineThatItHeardOf(t *testing.T) {
	const fenceAfter = 3 * time.Second
	length := assignment.QuarantineTime(fenceAfter)
	hand := &handClock{at: time.Hour}
	c := &claimer{Allocator: &Allocator{
		connection: connection{clock: clocktesting.NewFakeClock(noon)}, quarantined: *life(&box{}, boot, hand),
	}}
	c.server, c.pod = &c.connection, &metav1.PartialObjectMetadata{}
	c.outcome.FenceAfter = fenceAfter
	again := noon.Add(pace.ReadAgain)
	if in := c.wakeIn(again); in != pace.ReadAgain {
		t.Fatalf("it wakes up in %s without a quarantine, want %s", in, pace.ReadAgain)
	}
	c.foresee(trusted(ownerUID, quarantined(1)))
	if in := c.wakeIn(again); in != length {
		t.Errorf("it wakes up in %s, want %s", in, length)
	}
	hand.at += length
	if in := c.wakeIn(again); in != 0 {
		t.Errorf("it wakes up in %s although the quarantine is over", in)
	}
}

func TestQuarantinesThatComeBackBeginAnew(t *testing.T) {
	const length = 10 * time.Second
	c := &handClock{}
	q := &quarantines{now: c.now}
	q.note(quarantined(1), noon)
	c.at += length
	q.note(assignment.State{}, noon)
	q.note(quarantined(1), noon)
	if got := servedEpochs(q, length); len(got) > 0 {
		t.Errorf("%v served: an old state that was brought back must not end a new quarantine", got)
	}
	c.at += length
	q.note(quarantined(1), noon)
	if got := servedEpochs(q, length); !slices.Equal(got, []int64{1}) {
		t.Errorf("served: %v, want 1", got)
	}
}

// box is a Memory.
type box struct {
	data   []byte
	saves  int
	broken error
}

// Load implements Memory.
func (b *box) Load() ([]byte, error) { return b.data, b.broken }

// Save implements Memory.
func (b *box) Save(data []byte) error {
	b.saves++
	if b.broken == nil {
		b.data = data
	}
	return b.broken
}

// life is one process on a machine whose boot-time clock is c.
func life(b *box, boot string, c *handClock) *quarantines {
	return &quarantines{now: c.now, keeper: keeper{memory: b, boot: boot}, log: logr.Discard()}
}

const (
	boot     = "a3a0e2c4 time:[4026531834]"
	ownerUID = types.UID("owner")
	served   = 10 * time.Second
	// fresh is an epoch that another clock may not have come to yet.
	fresh = 1795219200000 - 4000
)

// trusted is an owner whose map is trusted.
func trusted(uid types.UID, state assignment.State) store.Owner {
	o := store.Owner{Trust: assignment.Clean}
	o.UID, o.Record.Sealed, o.Record.State = uid, true, state
	return o
}

func TestATimeInQuarantineOutlivesTheProcess(t *testing.T) {
	b, c := &box{}, &handClock{at: time.Hour}
	for range 3 { // each lives for a third of it
		a := life(b, boot, c)
		a.see(trusted(ownerUID, quarantined(1)), noon)
		if got := servedEpochs(a, served); len(got) > 0 {
			t.Fatalf("%v served after %s", got, c.at-time.Hour)
		}
		c.at += served / 3
	}
	c.at = time.Hour + served - 1
	a := life(b, boot, c)
	a.see(trusted(ownerUID, quarantined(1, 5)), noon)
	if got := servedEpochs(a, served); len(got) > 0 {
		t.Errorf("%v served before the time", got)
	}
	c.at++
	if got := servedEpochs(a, served); !slices.Equal(got, []int64{1}) {
		t.Errorf("served: %v, want 1: it is as long ago that a process of this pod saw it first", got)
	}
}

func TestWhatIsRememberedCountsOnlyWhereItIsKnownToHold(t *testing.T) {
	const first, later = time.Hour, time.Hour + 2*served
	unclean := trusted(ownerUID, quarantined(1))
	unclean.Trust = assignment.Foreign
	untracked := unclean
	untracked.Trust = assignment.Untracked
	for name, tc := range map[string]struct {
		before, after store.Owner
		boot          string
		at            time.Duration
		counts        bool
	}{
		"the same":                    {at: later, counts: true},
		"another boot of the machine": {boot: "b7", at: later},

		"a clock that went back":            {at: first - 1},
		"another owner of the name":         {after: trusted("other", quarantined(1)), at: later},
		"a map that somebody changed":       {after: unclean, at: later},
		"a map of nobody":                   {after: untracked, at: later},
		"it was seen on a map of nobody":    {before: untracked, at: later},
		"it was seen on a map changed then": {before: unclean, at: later},
		"another epoch":                     {before: trusted(ownerUID, quarantined(2)), at: later},
		"an epoch of now, which may recur":  {before: trusted(ownerUID, quarantined(fresh)), after: trusted(ownerUID, quarantined(fresh)), at: later},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.before.UID == "" {
				tc.before = trusted(ownerUID, quarantined(1))
			}
			if tc.after.UID == "" {
				tc.after = trusted(ownerUID, quarantined(1))
			}
			if tc.boot == "" {
				tc.boot = boot
			}
			b, c := &box{}, &handClock{at: first}
			life(b, boot, c).see(tc.before, noon)
			c.at = tc.at
			a := life(b, tc.boot, c)
			a.see(tc.after, noon)
			a.see(trusted(tc.after.UID, tc.after.Record.State), noon) // and trusted again
			if got := servedEpochs(a, served); (len(got) == 1) != tc.counts {
				t.Errorf("served: %v, want one: %t", got, tc.counts)
			}
		})
	}
}

func TestAnEpochCountsForTheNextProcessFromWhenItWasSettled(t *testing.T) {
	b, c := &box{}, &handClock{at: time.Hour}
	a := life(b, boot, c)
	a.see(trusted(ownerUID, quarantined(fresh)), noon)
	c.at += 3 * time.Second
	a.see(trusted(ownerUID, quarantined(fresh)), noon.Add(3*time.Second))
	c.at = time.Hour + served
	if got := servedEpochs(a, served); len(got) != 1 {
		t.Errorf("served: %v; it is known for so long", got)
	}
	next := life(b, boot, c)
	next.see(trusted(ownerUID, quarantined(fresh)), noon)
	if got := servedEpochs(next, served); len(got) > 0 {
		t.Errorf("served by the next process: %v; its epoch could have been given twice at first", got)
	}
	c.at += 3 * time.Second
	if got := servedEpochs(next, served); len(got) != 1 {
		t.Errorf("served by the next process: %v", got)
	}
}

func TestWithoutABootNothingIsRecalled(t *testing.T) {
	b, c := &box{}, &handClock{at: time.Hour}
	life(b, "", c).see(trusted(ownerUID, quarantined(1)), noon)
	c.at += served
	a := life(b, "", c)
	a.see(trusted(ownerUID, quarantined(1)), noon)
	if got := servedEpochs(a, served); len(got) > 0 {
		t.Errorf("%v served: two boots that nobody knows may be two", got)
	}
}

func TestAnEpochThatAnEarlierProcessSawVanishBeginsAnew(t *testing.T) {
	b, c := &box{}, &handClock{at: time.Hour}
	first := life(b, boot, c)
	first.see(trusted(ownerUID, quarantined(1)), noon)
	first.see(trusted(ownerUID, assignment.State{}), noon)
	c.at += served
	a := life(b, boot, c)
	a.see(trusted(ownerUID, quarantined(1)), noon)
	if got := servedEpochs(a, served); len(got) > 0 {
		t.Errorf("%v served", got)
	}
}

func TestAnOwnerThatWasMadeAnewBeginsAnew(t *testing.T) {
	c := &handClock{at: time.Hour}
	a := life(&box{}, boot, c)
	a.see(trusted(ownerUID, quarantined(1)), noon)
	c.at += served
	a.see(trusted("other", quarantined(1)), noon)
	if got := servedEpochs(a, served); len(got) > 0 {
		t.Errorf("%v served: they are of an owner that is gone", got)
	}
}

func TestAMemoryThatIsOfNoUseIsNoObstacle(t *testing.T) {
	for name, b := range map[string]*box{
		"nothing": {}, "nonsense": {data: []byte("{")}, "no numbers": {data: []byte(`{"boot":"x","owner":"owner","since":{"soon":1}}`)},
		"broken": {broken: errors.New("no space left")},
	} {
		t.Run(name, func(t *testing.T) {
			c, logged := &handClock{at: time.Hour}, 0
			a := life(b, boot, c)
			a.log = funcr.New(func(string, string) { logged++ }, funcr.Options{})
			for range 3 {
				a.see(trusted(ownerUID, quarantined(1)), noon)
			}
			c.at += served
			if got := servedEpochs(a, served); !slices.Equal(got, []int64{1}) {
				t.Errorf("served: %v, want 1", got)
			}
			if want := b.broken != nil; (logged == 1) != want || logged > 1 {
				t.Errorf("%d messages, want one: %t", logged, want)
			}
		})
	}
}

// This process's clock was never at these times, so nobody saw the quarantine then.
func TestATimeBeforeTheBootIsNotBelieved(t *testing.T) {
	for _, since := range []string{"0", "-1"} {
		c := &handClock{at: time.Hour}
		a := life(&box{data: []byte(`{"boot":"` + boot + `","owner":"owner","since":{"1":` + since + `}}`)}, boot, c)
		a.see(trusted(ownerUID, quarantined(1)), noon)
		if got := servedEpochs(a, served); len(got) > 0 {
			t.Errorf("%v served, as if it had been seen at %s", got, since)
		}
	}
}

// What could not be saved is of another owner, perhaps.
func TestWhatIsLoadedIsOnlyWhatWasSaved(t *testing.T) {
	k := keeper{memory: &box{data: []byte(`{"boot":"x","owner":"o","since":{"1":5}}`)}, saved: remembered{Since: map[int64]time.Duration{7: 3}}}
	if r := k.load(); len(r.Since) != 1 || r.Since[1] != 5 {
		t.Errorf("loaded %v", r.Since)
	}
}

func TestNothingIsSavedWithoutNews(t *testing.T) {
	b, c := &box{}, &handClock{at: time.Hour}
	a := life(b, boot, c)
	a.see(trusted(ownerUID, assignment.State{}), noon) // an owner without strict mode
	if b.saves != 0 {
		t.Errorf("saved %d times, want never: there is no quarantine", b.saves)
	}
	for range 3 {
		c.at += time.Second
		a.see(trusted(ownerUID, quarantined(1)), noon)
	}
	if b.saves != 1 {
		t.Errorf("saved %d times, want once", b.saves)
	}
}
