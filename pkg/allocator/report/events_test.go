package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/report"
	"github.com/idalloc/idalloc/test/apifake"
)

// Each foreign pod is named once, and one that comes in the minute of another one's Event is not forgotten.
func TestEachForeignPodIsNamedOnce(t *testing.T) {
	api, clk, said := apifake.New(t), testclock.NewFakeClock(apifake.Born()), ""
	api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		said += string(body)
		return false
	})
	s := api.Store(t, clk)
	var running sync.WaitGroup
	log := logr.Discard()
	events := report.NewEvents(s, &log, apifake.Namespace, metav1.OwnerReference{Name: "p0"}, func(f func(context.Context)) { running.Go(func() { f(t.Context()) }) })
	x, y := proposal.Change{ID: 1, Pod: "x"}, proposal.Change{ID: 2, Pod: "y"}
	for i, tc := range []struct {
		foreign []proposal.Change
		want    string
	}{
		{nil, ""}, {[]proposal.Change{x}, ": pod x (id 1)\""}, {[]proposal.Change{x, y}, ""}, {[]proposal.Change{x, y}, ": pod y (id 2)\""}, {[]proposal.Change{x, y}, ""},
	} {
		said = ""
		events.Observe(event.Planned{Foreign: tc.foreign})
		running.Wait()
		if clk.Step(30 * time.Second); (said == "") != (tc.want == "") || !strings.Contains(said, tc.want) {
			t.Errorf("the plan %d leaves %q, want %q", i, said, tc.want)
		}
	}
}

// What is to be said once is said again if the Event could not be written, and not if it could.
func TestAnEventThatCouldNotBeWrittenIsLeftAgain(t *testing.T) {
	for name, e := range map[string]event.Event{
		"a foreign pod":   event.Planned{Foreign: []proposal.Change{{ID: 1, Pod: "x"}}},
		"no room":         event.NoRoom{Detail: "full"},
		"waiting":         event.StillWaiting{Reason: "a free slot"},
		"about a pause":   event.Paused{Paused: true, For: 1},
		"partitions held": event.PartitionsHeldUp{Reason: "PartitionsTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			api := apifake.New(t)
			s := api.Store(t, clock.RealClock{})
			refuse := true
			api.Before(func(w http.ResponseWriter, _ *http.Request) bool {
				if refuse {
					apifake.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "a quota")
				} else {
					apifake.Refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "another process left it")
				}
				return true
			})
			var running sync.WaitGroup
			start := func(f func(context.Context)) { running.Go(func() { f(t.Context()) }) }
			log := logr.Discard()
			events := report.NewEvents(s, &log, apifake.Namespace, metav1.OwnerReference{Name: "p0"}, start)
			for i, want := range []int{1, 1, 0} { // refused, left, left before
				events.Observe(e)
				running.Wait()
				if refuse = false; len(api.Requests()) != want {
					t.Errorf("the %dth time it does not send %d Events", i+1, want)
				}
			}
		})
	}
}

// An account may write Events about its pod and its workload, and about nothing else.
func TestDamageBesideAnOwnerThatIsGoneIsToldOfThePod(t *testing.T) {
	for owner, want := range map[string]string{"": "p0", "worker": "worker"} {
		api, said := apifake.New(t), ""
		api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			said += string(body)
			return false
		})
		s := api.Store(t, testclock.NewFakeClock(apifake.Born()))
		var running sync.WaitGroup
		log := logr.Discard()
		events := report.NewEvents(s, &log, apifake.Namespace, metav1.OwnerReference{Name: "p0"}, func(f func(context.Context)) { running.Go(func() { f(t.Context()) }) })
		events.Observe(event.Damaged{About: metav1.OwnerReference{Name: owner}, Reason: "ReceiptDamaged"})
		running.Wait()
		var left struct {
			InvolvedObject struct {
				Name string `json:"name"`
			} `json:"involvedObject"`
		}
		if err := json.Unmarshal([]byte(said), &left); err != nil || left.InvolvedObject.Name != want {
			t.Errorf("the Event is about %q, not %q: %v", left.InvolvedObject.Name, want, err)
		}
	}
}
