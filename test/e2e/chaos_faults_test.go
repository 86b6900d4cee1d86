//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// fault is one kind of them.
type fault struct {
	kind   string
	weight int
	// everywhere: it concerns all workloads.
	everywhere bool
	// only names the workload that it is for; empty is any.
	only string
	// do begins it and says what it hit; undo, which may be nil, ends it. It fails when there is nothing to
	// break, or the API server does not answer.
	do func(ctx context.Context, d draw) (what string, undo func(context.Context) error, err error)
}

// mostRestarts is how often a container is killed at most: the kubelet starts it again after 10 s, then
// 20 s, then 40 s and so on, and a pod that waits for that tests nothing.
const mostRestarts = 2

func (c *chaos) faults() []fault { return slices.Concat(c.clusterFaults(), c.networkFaults()) }

func (c *chaos) clusterFaults() []fault {
	return []fault{
		{kind: "kill workload", weight: 8, do: killProcess(false)},
		{kind: "suspend workload", weight: 8, do: suspendProcess(false)},
		{kind: "kill watcher", weight: 4, only: withWatcher, do: killProcess(true)},
		{kind: "suspend watcher", weight: 4, only: withWatcher, do: suspendProcess(true)},
		{kind: "delete pod", weight: 8, do: deletePod},
		{kind: "force-delete pod", weight: 4, do: forceDelete},
		{kind: "fail pod", weight: 3, do: failPod},
		{kind: "rollout", weight: 4, do: kubectlFault("rollout", "restart", "deployment", name)},
		{kind: "rollout undo", weight: 2, do: kubectlFault("rollout", "undo", "deployment", name)},
		{kind: "scale", weight: 8, do: scaleFault},
		{kind: "kill API server", weight: 1, everywhere: true, do: c.killParts("apiserver")},
		{kind: "kill etcd", weight: 1, everywhere: true, do: c.killParts("etcd")},
		{kind: "kill API server and etcd", weight: 1, everywhere: true, do: c.killParts("apiserver", "etcd")},
		{kind: "kill kubelet", weight: 1, everywhere: true, do: c.killParts("kubelet")},
		{kind: "suspend API server", weight: 2, everywhere: true, do: c.suspendPart("apiserver")},
		{kind: "suspend etcd", weight: 2, everywhere: true, do: c.suspendPart("etcd")},
		{kind: "suspend kubelet", weight: 3, everywhere: true, do: c.suspendPart("kubelet")},
		{kind: "annotations wiped", weight: 2, do: tamper(wiped)},
		{kind: "annotations rolled back", weight: 2, do: tamper((*victim).rolledBack)},
		{kind: "assignment swapped", weight: 2, do: tamper(swapped)},
		{kind: "assignment damaged", weight: 2, do: tamper(damaged)},
	}
}

// networkFaults are between the pods of one workload and the API server.
func (c *chaos) networkFaults() []fault {
	return []fault{
		{kind: "network cut", weight: 3, do: c.cut},
		{kind: "network latency", weight: 2, do: c.poison(
			toxic{Type: "latency", Stream: toPods, Attributes: map[string]int{"latency": 400, "jitter": 350}},
			toxic{Type: "latency", Stream: toServer, Attributes: map[string]int{"latency": 200, "jitter": 200}})},
		{kind: "network reset", weight: 2, do: c.poison(toxic{Type: "reset_peer", Stream: toPods, Attributes: within(150)})},
		{kind: "network silent", weight: 2, do: c.poison(toxic{Type: "timeout", Stream: toPods, Attributes: within(0)})},
		{kind: "network answerless", weight: 2, do: c.poison(toxic{Type: "timeout", Stream: toPods, Attributes: within(700)})},
		{kind: "network narrow", weight: 2, do: c.poison( // KB a second
			toxic{Type: "bandwidth", Stream: toPods, Attributes: map[string]int{"rate": 4}},
			toxic{Type: "bandwidth", Stream: toServer, Attributes: map[string]int{"rate": 2}})},
		{kind: "network slow close", weight: 2, do: c.poison(
			toxic{Type: "slow_close", Stream: toPods, Attributes: map[string]int{"delay": 3000}},
			toxic{Type: "reset_peer", Stream: toServer, Attributes: within(1000)})},
	}
}

// Streams of a toxic.
const (
	toPods   = "downstream"
	toServer = "upstream"
)

// within is for toxics that end a connection after some milliseconds; with 0, "timeout" keeps it open and silent.
func within(milliseconds int) map[string]int { return map[string]int{"timeout": milliseconds} }

// processes returns those of the containers of a pod, by the names of their programs. A restarted
// container's is another one.
func processes(pod string) (map[string]int, error) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, path := range environments {
		if !belongs(path, pod) {
			continue
		}
		dir := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		program, err := os.ReadFile(filepath.Join(dir, "comm")) //nolint:gosec // of /proc
		if err == nil {
			found[strings.TrimSpace(string(program))] = pid
		}
	}
	return found, nil
}

func belongs(environ, pod string) bool {
	env, err := os.ReadFile(environ) //nolint:gosec // of /proc
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00POD_NAME="+pod+"\x00"))
}

// process picks a pod, and its workload's process or, with watcher, that of its idalloc container.
func (v *victim) process(ctx context.Context, pick int, watcher bool) (pod string, pid int, err error) {
	p, err := v.pick(ctx, pick, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && restarts(p) < mostRestarts })
	if err != nil {
		return "", 0, err
	}
	program := filepath.Base(v.command())
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

func killProcess(watcher bool) func(context.Context, draw) (string, func(context.Context) error, error) {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		pod, pid, err := d.on.process(ctx, d.pick, watcher)
		if err != nil {
			return "", nil, err
		}
		return pod, nil, syscall.Kill(pid, syscall.SIGKILL)
	}
}

func suspendProcess(watcher bool) func(context.Context, draw) (string, func(context.Context) error, error) {
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
// its id to two, so there it is done to dead pods only.
func forceDelete(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	p, err := d.on.pick(ctx, d.pick, func(p corev1.Pod) bool { return d.on.strict || p.Status.Phase == corev1.PodFailed })
	if err != nil {
		return "", nil, err
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

func kubectlFault(args ...string) func(context.Context, draw) (string, func(context.Context) error, error) {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		_, err := d.on.kubectl(ctx, args...)
		return "", nil, err
	}
}

func scaleFault(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	n := strconv.Itoa(2 + d.pick%5)
	_, err := d.on.kubectl(ctx, "scale", "deployment", name, "--replicas="+n)
	return "to " + n, nil, err
}

// take reserves the control plane for one fault.
func (c *chaos) take() (release func(), err error) {
	select {
	case c.control <- struct{}{}:
		return func() { <-c.control }, nil
	default:
		return nil, fmt.Errorf("%w: the control plane is broken already", errNothing)
	}
}

// killParts kills parts of the cluster. They are started again when the fault is over.
func (c *chaos) killParts(parts ...string) func(context.Context, draw) (string, func(context.Context) error, error) {
	return func(context.Context, draw) (string, func(context.Context) error, error) {
		release, err := c.take()
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

func (c *chaos) suspendPart(part string) func(context.Context, draw) (string, func(context.Context) error, error) {
	return func(context.Context, draw) (string, func(context.Context) error, error) {
		release, err := c.take()
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

// kill signals a part of the cluster by its pid file.
func (c *chaos) kill(sig syscall.Signal, part string) error {
	text, err := os.ReadFile(filepath.Join(c.pids, part+".pid")) //nolint:gosec // the folder that the caller of the suite names
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, sig)
}

// tamper writes foreign annotations onto the Deployment; edit returns those to set, null being removed.
func tamper(edit func(v *victim, now map[string]string) map[string]any) func(context.Context, draw) (string, func(context.Context) error, error) {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		deploy, err := d.on.deployment(ctx)
		if err != nil {
			return "", nil, err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": edit(d.on, deploy.Annotations)}})
		if err != nil {
			return "", nil, err
		}
		_, err = client.AppsV1().Deployments(d.on.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "chaos"})
		return "", nil, err
	}
}

func wiped(*victim, map[string]string) map[string]any {
	edit := map[string]any{}
	for _, key := range assignment.Keys(assignment.DefaultKey) {
		edit[key] = nil
	}
	return edit
}

// rolledBack brings back what stood there some time ago.
func (v *victim) rolledBack(now map[string]string) map[string]any {
	v.mu.Lock()
	defer v.mu.Unlock()
	edit := wiped(v, now)
	for key := range edit {
		if value, was := v.old[key]; was {
			edit[key] = value
		}
	}
	v.old = now
	return edit
}

// swapped gives every id to the holder of the next one.
func swapped(_ *victim, now map[string]string) map[string]any {
	slots, err := assignment.ParseSlots(now[assignment.DefaultKey])
	if err != nil || len(slots) == 0 {
		return damaged(nil, nil)
	}
	ids, other := slots.IDs(), assignment.Slots{}
	for i, id := range ids {
		other[id] = slots[ids[(i+1)%len(ids)]]
	}
	return map[string]any{assignment.DefaultKey: other.Encode()}
}

func damaged(*victim, map[string]string) map[string]any {
	return map[string]any{assignment.DefaultKey: `{"0":"a","0":`}
}

// poison makes a workload's connections to the API server bad.
func (c *chaos) poison(toxics ...toxic) func(context.Context, draw) (string, func(context.Context) error, error) {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		mine := slices.Clone(toxics)
		for i := range mine {
			mine[i].Name = fmt.Sprintf("%s-%s-%d-%d", mine[i].Type, mine[i].Stream, d.pick, i)
		}
		heal := func(ctx context.Context) error { return c.proxies.remove(ctx, d.on.label, mine...) }
		return "", heal, c.proxies.add(ctx, d.on.label, mine...)
	}
}

// cut breaks a workload's connections to the API server, and refuses new ones.
func (c *chaos) cut(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	heal := func(ctx context.Context) error { return c.proxies.enable(ctx, d.on.label, true) }
	return "", heal, c.proxies.enable(ctx, d.on.label, false)
}
