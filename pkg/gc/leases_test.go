package gc

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/test/apifake"
)

// A Lease that a pod has stays, and so does that of a slot that the owner has.
func TestASweepDeletesLeasesAboveTheCount(t *testing.T) {
	for name, tc := range map[string]struct {
		denied, dry bool
		deletes     []int
		left        []int
	}{
		"those that no pod has":   {deletes: []int{2, 3}, left: []int{1, 4}},
		"none in a dry run":       {dry: true, deletes: []int{2, 3}, left: []int{1, 2, 3, 4}},
		"none without permission": {denied: true, left: []int{1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			server := apifake.New(t)
			server.Put(apifake.Assigned(2, assignment.State{}))
			s := server.Store(t, clock.RealClock{})
			for _, l := range []slotlease.Lease{{ID: 3}, {ID: 1}, {ID: 2}, {ID: 4, Holder: "lost-uid", Pod: "lost", Lasts: time.Second}} {
				if _, err := s.PutLease(t.Context(), apifake.Ref(), l); err != nil {
					t.Fatal(err)
				}
			}
			server.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if tc.denied && r.Method == http.MethodDelete {
					apifake.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, `User "x" cannot delete resource "leases"`)
					return true
				}
				return false
			})
			got, err := Sweep(t.Context(), s, apifake.Ref(), tries(1), tc.dry)
			if err != nil || fmt.Sprint(got.Leases) != fmt.Sprint(tc.deletes) {
				t.Errorf("%v, %v, want %v", got.Leases, err, tc.deletes)
			}
			var left []int
			for id := range 5 {
				if server.Get("Lease", slotlease.Name("Deployment/"+apifake.Worker, id)) != nil {
					left = append(left, id)
				}
			}
			if fmt.Sprint(left) != fmt.Sprint(tc.left) {
				t.Errorf("left are %v, want %v", left, tc.left)
			}
		})
	}
}
