package report_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/report"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// What is to be said once is said again if the Event could not be written, and not if it could.
func TestAnEventThatCouldNotBeWrittenIsLeftAgain(t *testing.T) {
	for name, e := range map[string]event.Event{
		"no room":         event.NoRoom{Detail: "full"},
		"waiting":         event.StillWaiting{Reason: "a free slot"},
		"about a pause":   event.Paused{Paused: true, For: 1},
		"partitions held": event.PartitionsHeldUp{Reason: "PartitionsTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			api := apifake.New(t)
			s, err := store.New(api.Config(), clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
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
