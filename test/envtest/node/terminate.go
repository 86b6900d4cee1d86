package node

import (
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/test/envtest/process"
)

// minimumGrace is what a kubelet leaves every container between SIGTERM and
// SIGKILL, however short the grace period or what is left of it.
const minimumGrace = 2 * time.Second

func gracePeriod(object *corev1.Pod) time.Duration {
	seconds := object.Spec.TerminationGracePeriodSeconds
	if object.DeletionGracePeriodSeconds != nil {
		seconds = object.DeletionGracePeriodSeconds
	}
	if seconds == nil {
		return corev1.DefaultTerminationGracePeriodSeconds * time.Second
	}
	return time.Duration(*seconds) * time.Second
}

// stop makes the pod end. A second call can only shorten the grace period.
func (p *pod) stop(grace time.Duration) {
	p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline := time.Now().Add(grace)
	if p.timer != nil {
		if !deadline.Before(p.deadline) {
			return
		}
		p.timer.Stop()
	}
	p.deadline = deadline
	p.timer = time.AfterFunc(grace, func() { p.killOnce.Do(func() { close(p.killed) }) })
}

func (p *pod) stopTimer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}

// terminate ends all processes: preStop hooks of all containers at once, then
// SIGTERM to the containers, and when they have ended to the sidecars, the last
// one first.
func (p *pod) terminate() {
	p.stop(gracePeriod(p.object)) // only shortens: a deletion has set its own
	var hooks sync.WaitGroup
	for _, c := range p.launched() {
		hooks.Go(c.preStop)
	}
	var ends sync.WaitGroup
	var sidecars []*container
	for _, c := range p.launched() {
		if c.role == sidecar {
			sidecars = append(sidecars, c)
			continue
		}
		ends.Go(c.terminate)
	}
	ends.Wait()
	slices.Reverse(sidecars)
	for _, c := range sidecars {
		c.terminate()
	}
	hooks.Wait()
}

func (p *pod) launched() []*container {
	return slices.DeleteFunc(p.all(), func(c *container) bool { return !c.launched })
}

// all returns the containers in the order of their start.
func (p *pod) all() []*container { return slices.Concat(p.inits, p.mains) }

// terminate ends a container and returns when it has ended. The pod is stopping,
// so it is not started again.
func (c *container) terminate() {
	if child := c.running(); child != nil {
		select {
		case <-c.hooked:
		case <-c.pod.killed:
		case <-child.Done():
		}
		c.end(child)
	}
	<-c.ended
}

// end sends SIGTERM, and SIGKILL when the grace period is over, but not before the minimum.
func (c *container) end(child *process.Process) {
	child.Signal(syscall.SIGTERM)
	minimum := time.NewTimer(minimumGrace)
	defer minimum.Stop()
	select {
	case <-child.Done():
		return
	case <-c.pod.killed:
	}
	select {
	case <-child.Done():
	case <-minimum.C:
		child.Kill()
		<-child.Done()
	}
}
