package allocator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

func TestAPodComplainsOnceAndAgainForAnotherReason(t *testing.T) {
	at := time.UnixMilli(1795219200123)
	told := complaint{what: "a free slot", at: at}
	for name, tc := range map[string]struct {
		complaint complaint
		what      string
		now       time.Time
		want      bool
	}{
		"the first time":                {complaint{}, "a free slot", at, true},
		"nothing to wait for":           {complaint{}, "", at, false},
		"the same reason, hours later":  {told, "a free slot", at.Add(5 * time.Hour), false},
		"another reason soon after":     {told, "room", at.Add(complainAgain - 1), false},
		"another reason after a while":  {told, "room", at.Add(complainAgain), true},
		"other numbers":                 {complaint{what: "room: 9 pods live, a try in 59s", at: at}, "room: 10 pods live, a try in 1m5s", at.Add(5 * time.Hour), false},
		"another pod":                   {complaint{what: "pod a to go", at: at}, "pod b to go", at.Add(complainAgain), true},
		"no reason any more, meanwhile": {told, "", at.Add(complainAgain), false},
	} {
		if got := tc.complaint.due(tc.what, tc.now); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// announcing returns an observer whose server keeps the type, the reason and the object of each Event; while refuse is true it keeps none.
func announcing(t *testing.T) (a *announced, kept *[]string, refuse *bool) {
	t.Helper()
	kept, refuse = new([]string), new(bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			Type           string `json:"type"`
			Reason         string `json:"reason"`
			InvolvedObject struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
				UID  string `json:"uid"`
			} `json:"involvedObject"`
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || *refuse {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		*kept = append(*kept, e.Type+" "+e.Reason+" "+e.InvolvedObject.Kind+" "+e.InvolvedObject.Name+" "+e.InvolvedObject.UID)
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"}}`))
	}))
	t.Cleanup(server.Close)
	clk := testclock.NewFakeClock(time.UnixMilli(1795219200123))
	s, err := store.New(&rest.Config{Host: server.URL, Timeout: 10 * time.Second}, "", clk)
	if err != nil {
		t.Fatal(err)
	}
	c := &connection{store: s, clock: clk, log: logr.Discard(), streams: t.Context(), ref: store.Ref{Namespace: "ns"}, name: "a"}
	return &announced{connection: c, pod: metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "u"}}, kept, refuse
}

func TestKubernetesEventsTellWhatPeopleLookFor(t *testing.T) {
	a, kept, _ := announcing(t)
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "du"}
	for _, e := range []event.Event{
		event.Damaged{About: owner, Reason: "AssignmentChanged", Detail: "x"},
		event.Damaged{About: owner, Reason: "AssignmentRolledBack", Detail: "x", Expected: true},
		event.PodLost{About: owner, ID: 2, Pod: "b", Quarantine: time.Minute},
		event.StillWaiting{Reason: "room"},
		event.Taken{ID: 3}, event.Taken{ID: 3}, event.Given{About: owner, ID: 3, Requester: "b"}, event.Given{About: owner, ID: 3}, event.Lost{ID: 3},
		event.Conflict{}, event.Planned{},
	} {
		a.Observe(e)
		a.connection.running.Wait()
	}
	want := []string{"Warning AssignmentChanged Deployment d du", "Normal AssignmentRolledBack Deployment d du", "Warning PodLost Deployment d du", "Warning WaitingForSlot Pod a u",
		"Normal SlotTaken Pod a u", "Normal SlotHandedOver Deployment d du", "Warning IDLost Pod a u"}
	if !slices.Equal(*kept, want) {
		t.Errorf("the Events are %q, want %q", *kept, want)
	}
}

func TestKubernetesEventsTellWhatBecameOfPartitions(t *testing.T) {
	a, kept, _ := announcing(t)
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "du"}
	for _, e := range []event.Event{
		event.PartitionsInForce{About: owner, New: event.Division{Count: 64, Strategy: "sticky"}},
		event.FailedOver{About: owner, From: make([]event.Failover, 5)},
		event.PartitionsHeldUp{About: owner, Reason: keysIgnored, Detail: "x"},
		event.PartitionsHeldUp{About: owner, Reason: strategyUnknown, Detail: "x", Unannounced: true},
		event.Damaged{About: owner, Reason: "PartitionsChanged", Detail: "x"},
		event.Grown{}, event.Yielded{}, event.Revoked{}, event.PartitionsLost{}, event.PartitionsMoved{},
	} {
		a.Observe(e)
	}
	want := []string{
		"Normal PartitionsInForce Deployment d du", "Warning PartitionsFailedOver Deployment d du", "Warning PartitionKeysIgnored Deployment d du",
		"Warning PartitionsChanged Deployment d du",
	}
	if !slices.Equal(*kept, want) {
		t.Errorf("the Events are %q, want %q", *kept, want)
	}
}

func TestEventsAboutPartitionsAreSeldom(t *testing.T) {
	a, kept, refuse := announcing(t)
	clk, ok := a.connection.clock.(*testclock.FakeClock)
	if !ok {
		t.Fatal("the clock goes by itself")
	}
	ignored := event.PartitionsHeldUp{Reason: keysIgnored, Detail: "x"}
	*refuse = true
	a.Observe(ignored)
	*refuse = false // what could not be told counts as untold
	a.Observe(ignored)
	a.Observe(ignored)
	a.Observe(event.PartitionsHeldUp{Reason: partitionsLarge, Detail: "x"})
	clk.Step(announceAgain - 1)
	a.Observe(ignored)
	if len(*kept) != 2 {
		t.Errorf("within a minute the Events are %q, want one of each reason", *kept)
	}
	clk.Step(1)
	a.Observe(ignored)
	if len(*kept) != 3 {
		t.Errorf("after a minute the Events are %q, want one more", *kept)
	}
}

// A pod that got its id soon has nothing to tell.
func TestAPodTellsOfItsIDIfItToldOfItsWait(t *testing.T) {
	a, kept, _ := announcing(t)
	for _, e := range []event.Event{
		event.Claiming{}, event.Taken{ID: 3},
		event.Claiming{}, event.StillWaiting{Reason: "room"}, event.Taken{ID: 3},
		event.Claiming{}, event.StillWaiting{Reason: "room"}, event.Taken{ID: 3}, // the same wait again is told seldom
	} {
		a.Observe(e)
		a.connection.running.Wait()
	}
	if want := []string{"Warning WaitingForSlot Pod a u", "Normal SlotTaken Pod a u"}; !slices.Equal(*kept, want) {
		t.Errorf("the Events are %q, want %q", *kept, want)
	}
}

// The Event of a pod that waited may still be under way when it has its slot and works on partitions.
func TestAnEventThatTakesLongHoldsUpNoOther(t *testing.T) {
	a, _, _ := announcing(t)
	arrived, other := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			Reason string `json:"reason"`
		}
		err := json.NewDecoder(r.Body).Decode(&e)
		w.WriteHeader(http.StatusForbidden)
		if err != nil || e.Reason != "WaitingForSlot" {
			close(other)
			return
		}
		close(arrived)
		select {
		case <-other:
		case <-r.Context().Done():
			t.Error("the other Event came only when this one was given up")
		}
	}))
	t.Cleanup(server.Close)
	s, err := store.New(&rest.Config{Host: server.URL}, "", a.connection.clock)
	if err != nil {
		t.Fatal(err)
	}
	a.connection.store = s
	var running sync.WaitGroup
	running.Go(func() { a.Observe(event.StillWaiting{Reason: "room"}) })
	<-arrived
	a.Observe(event.PartitionsHeldUp{Reason: keysIgnored, Detail: "x"})
	running.Wait()
}

// A waiter plans again and again, and says once that there is no room, until it had a slot in between.
func TestAFullOwnerIsToldOnceForEachClaim(t *testing.T) {
	a, kept, refuse := announcing(t)
	full := event.NoRoom{About: metav1.OwnerReference{Kind: "Deployment", Name: "d"}, Detail: "x"}
	*refuse = true
	a.Observe(full)
	*refuse = false // what could not be told is told later
	a.Observe(full)
	a.Observe(full)
	a.Observe(event.Taken{ID: 1})
	a.Observe(full)
	if len(*kept) != 2 {
		t.Errorf("the Events are %q, want one before the slot was taken and one after it", *kept)
	}
}
