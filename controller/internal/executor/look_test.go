package executor

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A kubelet's clock may be ahead of the controller's by hours. For all that time a pod would not count as available, and old pods would be deleted past
// their budget.
func TestAPodThatIsReadyIsAvailableWhateverTheClock(t *testing.T) {
	p, now := &pass{}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(3 * time.Hour))},
	}}}
	if q := p.podOf(pod, nil); !q.Ready || q.AvailableAt.After(now) {
		t.Errorf("without minReadySeconds a pod that is Ready is available only at %s", q.AvailableAt)
	}
	p.owner.Rollout.MinReady = time.Minute
	if q := p.podOf(pod, nil); !q.AvailableAt.After(now.Add(3 * time.Hour)) {
		t.Errorf("with minReadySeconds it is available at %s already", q.AvailableAt)
	}
}
