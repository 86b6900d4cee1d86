package reconciler

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/placement"
)

// A tool that undoes each write of map and row is not answered each time at once.
func TestAMapThatIsUndoneIsWrittenAgainLaterEachTime(t *testing.T) {
	row := func(count int) *assignment.Row {
		return &assignment.Row{Count: count, Strategy: placement.DefaultName, Owners: placement.Owners{0: placement.Between(0, count-1)}}
	}
	for _, undone := range []error{nil, fmt.Errorf("plan: %w", request.ErrNotKept), fmt.Errorf("plan: %w", request.ErrRefused)} {
		now, writes := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0
		end := now.Add(time.Minute)
		var k memory
		for now.Before(end) {
			if k.left(now) <= 0 {
				k.wrote(assignment.State{}, decided(assignment.State{Slots: assignment.Slots{0: "a"}, Row: row(8)}), now, undone)
				writes++
			}
			now = now.Add(50 * time.Millisecond)
		}
		if writes < 5 || writes > 20 {
			t.Errorf("%v: %d writes in a minute", undone, writes)
		}
		if k.wrote(k.last, decided(assignment.State{Slots: assignment.Slots{0: "b"}, Row: row(8)}), now, undone); k.left(now) > 0 {
			t.Errorf("%v: another map waits for %s", undone, k.left(now))
		}
		if k.wrote(k.last, decided(assignment.State{Slots: assignment.Slots{0: "b"}, Row: row(4)}), now, undone); k.left(now) > 0 {
			t.Errorf("%v: another row waits for %s", undone, k.left(now))
		}
	}
}

// A program that changes the map all the time in ever new ways is not answered each time at once, be it that its next change comes before the answer.
func TestAMapThatIsUndoneInEverNewWaysIsWrittenLaterEachTime(t *testing.T) {
	row := func(id int) *assignment.Row {
		return &assignment.Row{Count: 8, Strategy: placement.DefaultName, Owners: placement.Owners{id: placement.Between(0, 7)}}
	}
	whole := func(i int) assignment.State {
		return assignment.State{Slots: assignment.Slots{i % 3: "a", (i + 1) % 3: "b", (i + 2) % 3: "c"}}
	}
	for name, undoes := range map[string]func(i int) (is, next assignment.State){
		"all is removed, and pods get other slots each time": func(i int) (is, next assignment.State) { return is, whole(i) },
		"another entry is removed each time": func(i int) (is, next assignment.State) {
			is, next = whole(0), whole(0)
			delete(is.Slots, i%3)
			return is, next
		},
		"another pod that is not there is named each time": func(i int) (is, next assignment.State) {
			is, next = whole(0), whole(0)
			is.Slots[3+i] = fmt.Sprintf("ghost-%d", i)
			return is, next
		},
		"another pod that is not there asks each time": func(i int) (is, next assignment.State) {
			is, next = whole(0), whole(0)
			is.Handover = assignment.Slots{i % 3: fmt.Sprintf("ghost-%d", i)}
			return is, next
		},
		"pods come and go meanwhile": func(i int) (is, next assignment.State) {
			next = whole(0)
			next.Slots[3] = fmt.Sprintf("pod-%d", i)
			return is, next
		},
		"another row is put there each time": func(i int) (is, next assignment.State) {
			is, next = whole(0), whole(0)
			is.Row, next.Row = row(3*i), row(3*i+1)
			return is, next
		},
	} {
		for _, err := range []error{nil, request.ErrConflict} {
			now, writes := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0
			var k memory
			k.wrote(whole(0), decided(whole(0)), now, nil)
			for end := now.Add(time.Minute); now.Before(end); now = now.Add(50 * time.Millisecond) {
				if k.left(now) <= 0 {
					is, next := undoes(writes + 1)
					k.wrote(is, decided(next), now, err)
					writes++
				}
			}
			if writes < 5 || writes > 20 {
				t.Errorf("%s (%v): %d writes in a minute", name, err, writes)
			}
		}
	}
}

// A peer plans, too. What it wrote stays, and no write of the controller waits for that.
func TestAMapThatAPeerWritesIsWrittenAtOnce(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var k memory
	state := assignment.State{Slots: assignment.Slots{}}
	for i := range 20 {
		state.Slots = maps.Clone(state.Slots)
		state.Slots[2*i] = fmt.Sprintf("peer-%d", i)
		next := assignment.State{Slots: maps.Clone(state.Slots)}
		next.Slots[2*i+1] = fmt.Sprintf("gated-%d", i)
		if k.wrote(state, decided(next), now, nil); k.left(now) > 0 {
			t.Fatalf("after %d writes of a peer the map waits for %s", i, k.left(now))
		}
		state, now = next, now.Add(time.Second)
	}
}

// A program that removes what pods do not have by their template meets each write on a pod: of a receipt, of what its container reads, of what an agent is told.
// Two controllers that disagree do the same. What says something else comes at once, and so does a write on another pod.
func TestWhatIsUndoneAgainAndAgainIsWrittenLaterEachTime(t *testing.T) {
	now, writes := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0
	var k memory
	pod := &podMeta{}
	for end := now.Add(time.Minute); now.Before(end); now = now.Add(50 * time.Millisecond) {
		if a := k.backoff("a", stepCount); a.left(pod, "id 0 of 3", now) <= 0 {
			a.accepted("id 0 of 3", now)
			writes++
		}
	}
	if writes < 5 || writes > 20 {
		t.Errorf("%d writes in a minute", writes)
	}
	if left := k.backoff("a", stepCount).left(pod, "id 0 of 4", now.Add(time.Second)); left > 0 {
		t.Errorf("a new count is told in %s", left)
	}
	for key, of := range map[types.UID]step{"a": stepTake, "b": stepCount} {
		if left := k.backoff(key, of).left(pod, "id 0 of 3", now); left > 0 {
			t.Errorf("pod %s, %s: it is written in %s", key, of, left)
		}
	}
}

// A count that changes ten times a second reaches each pod once a second, and the last one reaches it, too.
func TestACountThatNeverStandsStillIsToldOnceASecond(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var k memory
	count, told, writes, now := 0, -1, 0, start
	for ; now.Before(start.Add(time.Minute)); now = now.Add(50 * time.Millisecond) {
		if tick := now.Sub(start); tick < 50*time.Second {
			count = int(tick / (100 * time.Millisecond))
		}
		a, says := k.backoff("a", stepCount), fmt.Sprint("count ", count)
		if told != count && a.left(&podMeta{}, says, now) <= 0 {
			a.accepted(says, now)
			told, writes = count, writes+1
		}
	}
	if told != count || writes > 51 || writes < 40 {
		t.Errorf("%d writes, and the pod was told %d of %d", writes, told, count)
	}
}

// What fails is tried again ever later, and at least every ten seconds: what refuses it may be gone. A pod that has changed since a conflict is written at once, but
// not one that changes all the time.
func TestAWriteThatFailsIsTriedAgainLaterEachTime(t *testing.T) {
	for err, c := range map[error]struct{ least, most int }{
		request.ErrRefused: {10, 30}, request.ErrAmbiguous: {10, 30}, request.ErrConflict: {10, 30},
	} {
		now, tries, last := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0, time.Time{}
		var a backoff
		for end := now.Add(90 * time.Second); now.Before(end); now = now.Add(10 * time.Millisecond) {
			pod := &podMeta{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(tries)}}
			if a.left(pod, "", now) > 0 {
				continue
			}
			if tries++; now.Sub(last) > pace.MaxDelay+time.Second+10*time.Millisecond && !last.IsZero() {
				t.Errorf("%v: a try came after %s", err, now.Sub(last))
			}
			a.failed(pod, err, now)
			last = now
		}
		if tries < c.least || tries > c.most || !a.refused() {
			t.Errorf("%v: %d tries in 90 seconds, refused: %v", err, tries, a.refused())
		}
	}
	var a backoff
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old, changed := &podMeta{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, &podMeta{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}
	if a.failed(old, request.ErrConflict, now); a.left(old, "", now) <= 0 || a.left(changed, "", now) > 0 || a.refused() {
		t.Errorf("after one conflict it waits for %s, and for %s once it is news", a.left(old, "", now), a.left(changed, "", now))
	}
}

// Another write came first. The owner is read, and the plan is written at once.
func TestAConflictIsNoReasonToWriteTheMapLater(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var k memory
	for range 3 {
		k.wrote(assignment.State{}, decided(assignment.State{Slots: assignment.Slots{0: "a"}}), now, request.ErrConflict)
	}
	if k.left(now) > 0 {
		t.Errorf("the map waits for %s", k.left(now))
	}
}

func decided(next assignment.State) (d decision.Decision) {
	d.Plan.Next = &next
	return d
}

// The pods of a broken revision have new ids all the time, however many they are. When all fail once, because something else was away for a moment, they
// are not to wait for long.
func TestPodsThatFailShareWritesOfTheMap(t *testing.T) {
	now, writes := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), []time.Duration{}
	var k memory
	for after := time.Duration(0); after < time.Minute; after += 50 * time.Millisecond {
		if k.failing.Left(now.Add(after)) > 0 {
			continue
		}
		d := decided(assignment.State{Slots: assignment.Slots{len(writes): "a"}})
		d.Failing = true
		k.wrote(k.last, d, now.Add(after), nil)
		if writes = append(writes, after); k.left(now.Add(after)) > 0 {
			t.Errorf("what concerns other pods waits for %s", k.left(now.Add(after)))
		}
	}
	if len(writes) < 5 || len(writes) > 20 || writes[4] > 2*time.Second {
		t.Errorf("writes in a minute: %s", writes)
	}
	now = now.Add(time.Hour)
	if k.wrote(k.last, decided(assignment.State{}), now, nil); k.failing.Left(now) > 0 {
		t.Error("a pod that fails for once waits, because another one got an id")
	}
}

// The author of a pod chooses its grace period.
func TestAPodWithAHugeGracePeriodIsNotLostAtOnce(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	grace := int64(math.MaxInt64/time.Second) + 1
	w := decision.World{Now: now, Pods: []decision.Pod{{Pod: proposal.Pod{Name: "a", UID: "a", Terminating: true}}}}
	var k memory
	k.rollout.ends(&w, map[string]*podMeta{"a": {ObjectMeta: metav1.ObjectMeta{DeletionGracePeriodSeconds: &grace}}})
	if !w.Pods[0].LostAt.After(now) {
		t.Errorf("lost at %s, deleted at %s with %d s of grace", w.Pods[0].LostAt, now, grace)
	}
}

// A migration that waits would list all pods every two seconds, without end.
func TestPodsOutsideOfTheCacheAreListedMoreSeldomWhileNothingChanges(t *testing.T) {
	pods := []decision.Pod{{Pod: proposal.Pod{Name: "a"}, Version: "1"}, {Pod: proposal.Pod{Name: "b"}, Version: "2"}}
	o := outside{}
	for round := range 2 {
		for i, want := range []time.Duration{mixedAfter, 2 * mixedAfter, mixedLast, mixedLast} {
			if got := o.again(pods); got != want {
				t.Errorf("after %d changes, list %d comes after %s, want %s", round, i, got, want)
			}
		}
		pods[1].Version = "3"
	}
}
