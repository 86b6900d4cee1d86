package node

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/process"
)

type role int

const (
	mainContainer role = iota
	initContainer
	sidecar // an init container with restartPolicy Always
)

// startErrorCode is the exit code that a runtime reports for a program that
// could not be started.
const startErrorCode = 128

// container runs one container of a pod, again and again as its policy asks.
type container struct {
	pod      *pod
	spec     *corev1.Container
	role     role
	launched bool // used by the pod's own goroutine only

	// up is closed when the container has started for the first time, its
	// startup probe included; ended when it will not run again; hooked when its
	// preStop hook is over.
	up, ended, hooked chan struct{}
	upOnce            sync.Once

	mu     sync.Mutex
	child  *process.Process
	runs   int32 // that have ended
	status corev1.ContainerStatus
}

func newContainer(p *pod, spec *corev1.Container, role role) *container {
	started := false
	return &container{
		pod:    p,
		spec:   spec,
		role:   role,
		up:     make(chan struct{}),
		ended:  make(chan struct{}),
		hooked: make(chan struct{}),
		status: corev1.ContainerStatus{
			Name:    spec.Name,
			Image:   spec.Image,
			ImageID: spec.Image,
			Started: &started,
			State:   corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
		},
	}
}

// supervise runs the container until it has ended for good.
func (c *container) supervise() {
	defer close(c.ended)
	backoff := newBackoff(maxBackOff)
	for {
		begin := time.Now()
		err := c.runOnce()
		if c.pod.ctx.Err() != nil || err == nil && !c.again() {
			return
		}
		if err != nil {
			c.setWaiting("CreateContainerConfigError", err.Error())
		} else {
			c.backOff()
		}
		timer := time.NewTimer(backoff.next(time.Since(begin)))
		select {
		case <-timer.C:
		case <-c.pod.ctx.Done():
			timer.Stop()
			c.abandon()
			return
		}
	}
}

// again says whether the container's end calls for another run.
func (c *container) again() bool {
	policy := c.pod.object.Spec.RestartPolicy
	switch {
	case c.role == sidecar:
		return true
	case c.role == mainContainer && policy == corev1.RestartPolicyAlways:
		return true
	default:
		return policy != corev1.RestartPolicyNever && !c.succeeded()
	}
}

// runOnce runs the container's program once, with its probes. An error means
// that the spec does not describe one.
func (c *container) runOnce() error {
	cmd, err := c.command()
	if err != nil {
		return err
	}
	child, err := c.start(cmd)
	if err != nil {
		c.setTerminated(startErrorCode, "StartError", err.Error(), metav1.Now())
		return nil
	}
	if child == nil {
		return nil
	}
	started := metav1.Now()
	c.setRunning(started)

	ctx, cancel := context.WithCancel(c.pod.node.ctx)
	var probes sync.WaitGroup
	probes.Go(func() { c.watchHealth(ctx) })
	<-child.Done()
	cancel()
	probes.Wait()

	code, reason := child.ExitCode(), "Completed"
	if code != 0 {
		reason = "Error"
	}
	c.setTerminated(code, reason, "", started)
	return nil
}

// start returns no process when the pod is stopping. It decides that under the
// lock that running takes, so that terminate sees every process.
func (c *container) start(cmd *exec.Cmd) (*process.Process, error) {
	log, err := c.openLog()
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = log, log

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pod.ctx.Err() != nil {
		return nil, nil //nolint:nilnil // documented
	}
	child, err := c.pod.node.group.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	c.child = child
	return child, nil
}

// running returns the process, nil when there is none.
func (c *container) running() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.child
}
