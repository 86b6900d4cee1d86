//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fault is one kind of them.
type fault struct {
	kind   string
	weight int
	// everywhere: it concerns all workloads.
	everywhere bool
	// only tells which workloads it is for; nil: all.
	only func(*victim) bool
	do   action
}

// action begins a fault and says what it hit; undo, which may be nil, ends it. It fails when there is
// nothing to break, or the API server does not answer.
type action func(ctx context.Context, d draw) (what string, undo func(context.Context) error, err error)

// mostRestarts is how often a container is killed at most: the kubelet starts it again after 10 s, then
// 20 s, then 40 s and so on, and a pod that waits for that tests nothing.
const mostRestarts = 2

// faults returns the kinds that are to be drawn.
func (c *chaos) faults() []fault {
	GinkgoHelper()
	wanted, err := regexp.Compile(*chaosFaults)
	Expect(err).NotTo(HaveOccurred(), "-chaos.faults")
	all := slices.DeleteFunc(slices.Concat(c.clusterFaults(), foreignFaults(), partitionFaults(), c.networkFaults()), func(f fault) bool { return !wanted.MatchString(f.kind) })
	Expect(all).NotTo(BeEmpty(), "kinds of faults that match -chaos.faults=%s", *chaosFaults)
	return all
}

func (c *chaos) clusterFaults() []fault {
	return []fault{
		{kind: "kill workload", weight: 8, do: killProcess(false)},
		{kind: "suspend workload", weight: 8, do: suspendProcess(false)},
		{kind: "kill watcher", weight: 4, only: watched, do: killProcess(true)},
		{kind: "suspend watcher", weight: 4, only: watched, do: suspendProcess(true)},
		{kind: "delete pod", weight: 8, do: deletePod},
		{kind: "force-delete pod", weight: 4, do: forceDelete},
		{kind: "fail pod", weight: 3, do: failPod},
		{kind: "rollout", weight: 6, do: kubectlFault("rollout", "restart", "deployment", name)},
		{kind: "rollout undo", weight: 4, do: foreign(undoRollout)},
		{kind: "scale", weight: 8, do: scaleFault},
		{kind: "kill API server", weight: 1, everywhere: true, do: c.killParts("apiserver")},
		{kind: "kill etcd", weight: 1, everywhere: true, do: c.killParts("etcd")},
		{kind: "kill API server and etcd", weight: 1, everywhere: true, do: c.killParts("apiserver", "etcd")},
		{kind: "kill kubelet", weight: 2, everywhere: true, do: c.killParts("kubelet")},
		{kind: "suspend API server", weight: 2, everywhere: true, do: c.suspendPart("apiserver")},
		{kind: "suspend etcd", weight: 2, everywhere: true, do: c.suspendPart("etcd")},
		{kind: "suspend kubelet", weight: 3, everywhere: true, do: c.suspendPart("kubelet")},
	}
}

// watched: an idalloc container, the watcher, publishes the ids.
func watched(v *victim) bool { return v.example == sidecar }

// process picks a pod, and its program's process or, with watcher, that of its idalloc container.
func (v *victim) process(ctx context.Context, pick int, watcher bool) (pod string, pid int, err error) {
	p, err := v.pick(ctx, pick, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && restarts(p) < mostRestarts })
	if err != nil {
		return "", 0, err
	}
	program := filepath.Base(v.program())
	if watcher {
		program = "idalloc"
	}
	running, err := processes(p.Name)
	if err != nil {
		return "", 0, err
	}
	pid, ok := running[program]
	if !ok {
		return "", 0, fmt.Errorf("%w: %s does not run %s", errNothing, p.Name, program)
	}
	return p.Name, pid, nil
}

func restarts(p corev1.Pod) int32 {
	most := int32(0)
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		most = max(most, s.RestartCount)
	}
	return most
}

// pick returns one of the workload's pods that fit.
func (v *victim) pick(ctx context.Context, pick int, fits func(corev1.Pod) bool) (corev1.Pod, error) {
	pods, err := v.pods(ctx)
	if err != nil {
		return corev1.Pod{}, err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !fits(p) })
	if len(pods) == 0 {
		return corev1.Pod{}, errNothing
	}
	return pods[pick%len(pods)], nil
}

func killProcess(watcher bool) action {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		pod, pid, err := d.on.process(ctx, d.pick, watcher)
		if err != nil {
			return "", nil, err
		}
		return pod, nil, syscall.Kill(pid, syscall.SIGKILL)
	}
}

func suspendProcess(watcher bool) action {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		pod, pid, err := d.on.process(ctx, d.pick, watcher)
		if err != nil {
			return "", nil, err
		}
		resume := func(context.Context) error {
			if !belongs(fmt.Sprintf("/proc/%d/environ", pid), pod) {
				return nil // it was killed meanwhile
			}
			return ignoreEnded(syscall.Kill(pid, syscall.SIGCONT))
		}
		return pod, resume, syscall.Kill(pid, syscall.SIGSTOP)
	}
}

func ignoreEnded(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func deletePod(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	p, err := d.on.pick(ctx, d.pick, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil })
	if err != nil {
		return "", nil, err
	}
	return p.Name, nil, client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
}

// forceDelete removes the object of a pod whose processes may run on. Outside strict mode that may give
// its id to two, so there the check does not count the pod from then on.
func forceDelete(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	p, err := d.on.pick(ctx, d.pick, func(corev1.Pod) bool { return true })
	if err != nil {
		return "", nil, err
	}
	if !d.on.strict {
		d.on.excuse(p.Name)
	}
	return p.Name, nil, client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}

// failPod lets the kubelet end a pod at once; it stays as Failed, like an evicted one.
func failPod(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	p, err := d.on.pick(ctx, d.pick, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning })
	if err != nil {
		return "", nil, err
	}
	_, err = client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":1}}`), metav1.PatchOptions{})
	return p.Name, nil, err
}

func kubectlFault(args ...string) action {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		_, err := d.on.kubectl(ctx, args...)
		return "", nil, err
	}
}

// undoRollout brings the revision before back, with its copy of the annotations. Where there is none, it
// undoes a rollout that it begins itself.
func undoRollout(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	undo := kubectlFault("rollout", "undo", "deployment", name)
	what, end, err := undo(ctx, d)
	if err == nil || !strings.Contains(err.Error(), noHistory) {
		return what, end, err
	}
	if _, _, err := kubectlFault("rollout", "restart", "deployment", name)(ctx, d); err != nil {
		return "", nil, err
	}
	return undo(ctx, d)
}

// noHistory is what kubectl says when there is no revision to go back to.
const noHistory = "no rollout history"

func scaleFault(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	n := strconv.Itoa(2 + d.number%5)
	_, err := d.on.kubectl(ctx, "scale", "deployment", name, "--replicas="+n)
	return "to " + n, nil, err
}

// turn is had by one fault at a time.
type turn chan struct{}

// take waits until the others had theirs.
func (t turn) take(ctx context.Context) (release func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: another fault has to end first", errNothing)
	}
}

// killParts kills parts of the cluster. They are started again when the fault is over.
func (c *chaos) killParts(parts ...string) action {
	return func(ctx context.Context, _ draw) (string, func(context.Context) error, error) {
		release, err := c.control.take(ctx)
		if err != nil {
			return "", nil, err
		}
		for _, part := range parts {
			if err := c.kill(syscall.SIGKILL, part); err != nil {
				release()
				return "", nil, err
			}
		}
		restart := func(ctx context.Context) error {
			defer release()
			out, err := exec.CommandContext(ctx, c.up).CombinedOutput() //nolint:gosec // the command that the caller of the suite names
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}
		return "", restart, nil
	}
}

func (c *chaos) suspendPart(part string) action {
	return func(ctx context.Context, _ draw) (string, func(context.Context) error, error) {
		release, err := c.control.take(ctx)
		if err != nil {
			return "", nil, err
		}
		if err := c.kill(syscall.SIGSTOP, part); err != nil {
			release()
			return "", nil, err
		}
		resume := func(context.Context) error {
			defer release()
			return c.kill(syscall.SIGCONT, part)
		}
		return "", resume, nil
	}
}
