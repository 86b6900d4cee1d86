package gc

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

func TestAPodIsLostAfterItsGracePeriodWhateverTheWallClockShows(t *testing.T) {
	const grace = 30 * time.Second
	for name, tc := range map[string]struct {
		change func(pod *plan.Pod)
		known  time.Duration
		in     time.Duration
		ok     bool
	}{
		"just heard of":               {known: 0, in: grace + plan.LostAfter, ok: true},
		"for a while":                 {known: grace, in: plan.LostAfter, ok: true},
		"for long enough":             {known: grace + plan.LostAfter, in: 0, ok: true},
		"by its timestamp a year ago": {change: func(pod *plan.Pod) { pod.Deadline = time.Unix(0, 0) }, in: grace + plan.LostAfter, ok: true},
		"it is not strict":            {change: func(pod *plan.Pod) { pod.Receipt.FenceAfter = 0 }, known: time.Hour},
		"it is not being deleted":     {change: func(pod *plan.Pod) { pod.Terminating = false }, known: time.Hour},
		"it has no receipt":           {change: func(pod *plan.Pod) { pod.Receipt = nil }, known: time.Hour},
	} {
		pod := plan.Pod{Terminating: true, Grace: grace, Receipt: &assignment.Receipt{FenceAfter: time.Minute}}
		if tc.change != nil {
			tc.change(&pod)
		}
		if in, ok := LostIn(pod, tc.known); in != tc.in || ok != tc.ok {
			t.Errorf("%s: in %s, %t, want in %s, %t", name, in, ok, tc.in, tc.ok)
		}
	}
}

func TestAPlanKnowsTheGracePeriodOfAPodThatIsBeingDeleted(t *testing.T) {
	at, grace := metav1.Unix(100, 0), int64(30)
	pod, err := PodOf(store.Owner{}, &metav1.ObjectMeta{Name: "a", DeletionTimestamp: &at, DeletionGracePeriodSeconds: &grace}, true, time.Unix(100, 0))
	if err != nil || !pod.Terminating || pod.Grace != 30*time.Second || !pod.Deadline.Equal(at.Time) {
		t.Errorf("the pod is %+v, %v", pod, err)
	}
}
