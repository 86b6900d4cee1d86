package node

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// change alters the container's status and asks for a report.
func (c *container) change(alter func(*corev1.ContainerStatus)) {
	c.mu.Lock()
	alter(&c.status)
	c.mu.Unlock()
	c.pod.touch()
}

// snapshot returns a copy of the status.
func (c *container) snapshot() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.status.DeepCopy()
}

func (c *container) setRunning(at metav1.Time) {
	c.change(func(s *corev1.ContainerStatus) {
		s.RestartCount = c.runs
		s.ContainerID = fmt.Sprintf("process://%d", c.child.Pid())
		if s.State.Terminated != nil {
			s.LastTerminationState = s.State
		}
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
		s.Started, s.Ready = new(bool), false
	})
}

func (c *container) setTerminated(code int, reason, message string, started metav1.Time) {
	c.change(func(s *corev1.ContainerStatus) {
		c.child = nil
		s.RestartCount = c.runs
		c.runs++
		terminated := &corev1.ContainerStateTerminated{
			ExitCode: int32(code), //nolint:gosec // 0 to 255
			Reason:   reason, Message: message,
			StartedAt: started, FinishedAt: metav1.Now(),
			ContainerID: s.ContainerID,
		}
		s.State = corev1.ContainerState{Terminated: terminated}
		s.Started = new(bool)
		// A finished init container counts as ready.
		s.Ready = c.role == initContainer && code == 0
	})
}

func (c *container) setWaiting(reason, message string) {
	c.change(func(s *corev1.ContainerStatus) {
		if s.State.Terminated != nil {
			s.LastTerminationState = s.State
		}
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	})
}

func (c *container) backOff() {
	c.setWaiting("CrashLoopBackOff", "waiting before the restart of a container that ended")
}

// abandon shows the last run's end again for a container that waited for a
// restart when the pod was stopped.
func (c *container) abandon() {
	c.change(func(s *corev1.ContainerStatus) {
		if s.State.Waiting != nil && s.LastTerminationState.Terminated != nil {
			s.State, s.LastTerminationState = s.LastTerminationState, corev1.ContainerState{}
		}
	})
}

// setStarted is called when the startup probe succeeded, or there is none.
func (c *container) setStarted() {
	c.change(func(s *corev1.ContainerStatus) {
		if s.State.Running == nil {
			return
		}
		started := true
		s.Started = &started
		s.Ready = c.spec.ReadinessProbe == nil
	})
	if c.role == sidecar {
		c.upOnce.Do(func() { close(c.up) })
	}
}

func (c *container) setReady(ready bool) {
	c.change(func(s *corev1.ContainerStatus) { s.Ready = ready && s.State.Running != nil })
}

// succeeded says whether the last run ended with exit code 0.
func (c *container) succeeded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status.State.Terminated != nil && c.status.State.Terminated.ExitCode == 0
}

// backoff doubles from a sixteenth of its maximum.
type backoff struct{ wait, most time.Duration }

func newBackoff(most time.Duration) *backoff { return &backoff{wait: most / 16, most: most} }

// next returns the wait after a run of the given length. After a long run it starts from the least wait.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran > 2*b.most {
		b.wait = b.most / 16
	}
	wait := b.wait
	b.wait = min(2*wait, b.most)
	return wait
}
