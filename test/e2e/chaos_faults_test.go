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
	all := slices.DeleteFunc(slices.Concat(c.clusterFaults(), partitionFaults(), c.networkFaults()), func(f fault) bool { return !wanted.MatchString(f.kind) })
	Expect(all).NotTo(BeEmpty(), "kinds of faults that match -chaos.faults=%s", *chaosFaults)
	return all
}

func (c *chaos) clusterFaults() []fault {
	return []fault{
		{kind: "kill workload", weight: 8, do: killProcesses(oneWorker)},
		{kind: "suspend workload", weight: 8, do: suspendProcesses(oneWorker)},
		{kind: "kill most of workload", weight: 2, do: killProcesses(mostWorkers)},
		{kind: "suspend most of workload", weight: 4, do: suspendProcesses(mostWorkers)},
		{kind: "kill fixed workload", weight: 2, do: killProcesses(fixedWorker)},
		{kind: "suspend fixed workload", weight: 2, do: suspendProcesses(fixedWorker)},
		{kind: "kill watcher", weight: 4, only: watched, do: killProcesses(oneWatcher)},
		{kind: "suspend watcher", weight: 4, only: watched, do: suspendProcesses(oneWatcher)},
		{kind: "delete pod", weight: 8, do: deletePod},
		{kind: "force-delete pod", weight: 4, do: forceDelete},
		{kind: "fail pod", weight: 3, do: failPod},
		{kind: "rollout", weight: 6, do: kubectlFault("rollout", "restart", "deployment", name)},
		{kind: "rollout undo", weight: 4, do: undoRollout},
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

// process is one that a fault hits.
type process struct {
	pod string
	pid int
}

// choice picks the processes that a fault hits.
type choice func(ctx context.Context, d draw) ([]process, error)

func oneWorker(ctx context.Context, d draw) ([]process, error) {
	return d.on.processes(ctx, d.pick, 1, filepath.Base(d.on.program()))
}

func oneWatcher(ctx context.Context, d draw) ([]process, error) {
	return d.on.processes(ctx, d.pick, 1, "idalloc")
}

// mostWorkers picks more than half of them.
func mostWorkers(ctx context.Context, d draw) ([]process, error) {
	return d.on.processes(ctx, d.pick, chaosReplicas/2+1, filepath.Base(d.on.program()))
}

// fixedWorker picks whichever has id 0, each time.
func fixedWorker(ctx context.Context, d draw) ([]process, error) {
	pods, err := d.on.those(ctx, func(p corev1.Pod) bool { return p.Labels[idLabel] == "0" && killable(p) })
	if err != nil {
		return nil, err
	}
	return running(pods[:1], filepath.Base(d.on.program()))
}

func killable(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && restarts(p) < mostRestarts
}

// processes returns those of a program in n pods one after the other, from the picked one on.
func (v *victim) processes(ctx context.Context, pick, n int, program string) ([]process, error) {
	pods, err := v.those(ctx, killable)
	if err != nil {
		return nil, err
	}
	if len(pods) < n {
		return nil, fmt.Errorf("%w: %d pods run that were not killed too often", errNothing, len(pods))
	}
	var chosen []corev1.Pod
	for i := range n {
		chosen = append(chosen, pods[(pick+i)%len(pods)])
	}
	return running(chosen, program)
}

// running returns the processes of a program in these pods.
func running(pods []corev1.Pod, program string) ([]process, error) {
	var found []process
	for _, pod := range pods {
		all, err := processes(pod.Name)
		if err != nil {
			return nil, err
		}
		pid, ok := all[program]
		if !ok {
			return nil, fmt.Errorf("%w: %s does not run %s", errNothing, pod.Name, program)
		}
		found = append(found, process{pod.Name, pid})
	}
	return found, nil
}

func restarts(p corev1.Pod) int32 {
	most := int32(0)
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		most = max(most, s.RestartCount)
	}
	return most
}

// those returns the workload's pods that fit, at least one.
func (v *victim) those(ctx context.Context, fits func(corev1.Pod) bool) ([]corev1.Pod, error) {
	pods, err := v.pods(ctx)
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !fits(p) })
	if len(pods) == 0 {
		return nil, errNothing
	}
	return pods, nil
}

// pick returns one of the workload's pods that fit.
func (v *victim) pick(ctx context.Context, pick int, fits func(corev1.Pod) bool) (corev1.Pod, error) {
	pods, err := v.those(ctx, fits)
	if err != nil {
		return corev1.Pod{}, err
	}
	return pods[pick%len(pods)], nil
}

func killProcesses(of choice) action {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		hit, err := signal(ctx, d, of, syscall.SIGKILL)
		return pods(hit), nil, err
	}
}

func suspendProcesses(of choice) action {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		hit, err := signal(ctx, d, of, syscall.SIGSTOP)
		if len(hit) == 0 {
			return "", nil, err
		}
		resume := func(context.Context) error {
			var failed []error
			for _, p := range hit {
				if belongs(fmt.Sprintf("/proc/%d/environ", p.pid), p.pod) { // it was not killed meanwhile
					failed = append(failed, ignoreEnded(syscall.Kill(p.pid, syscall.SIGCONT)))
				}
			}
			return errors.Join(failed...)
		}
		return pods(hit), resume, nil
	}
}

// signal sends a signal to the chosen processes and returns those that got it. It fails if none did.
func signal(ctx context.Context, d draw, of choice, what syscall.Signal) (hit []process, err error) {
	chosen, err := of(ctx, d)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, p := range chosen {
		if err := syscall.Kill(p.pid, what); err != nil {
			failed = append(failed, err)
		} else {
			hit = append(hit, p)
		}
	}
	if len(hit) == 0 {
		return nil, errors.Join(failed...)
	}
	return hit, nil
}

// pods names those of the processes.
func pods(of []process) string {
	names := make([]string, 0, len(of))
	for _, p := range of {
		names = append(names, p.pod)
	}
	return strings.Join(names, ", ")
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
