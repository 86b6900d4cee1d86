package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// row describes a pod. says is the last line of its program.
type row struct{ id, state, says string }

// frame is one moment of the workload: its pods by name.
type frame map[string]row

const (
	waits   = "waits for an id"
	runs    = "runs"
	stops   = "stops"
	nothing = "-"
)

// settled reports whether n pods run, and the program of each printed the count n and an id of its own.
func (f frame) settled(n int) bool {
	ids := map[string]bool{}
	for _, r := range f {
		if r.state != runs || r.says != fmt.Sprintf("I am %s of %d", r.id, n) {
			return false
		}
		ids[r.id] = true
	}
	return len(f) == n && len(ids) == n
}

// renewed reports whether no pod is older.
func (f frame) renewed(older frame) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Keys(f)), func(pod string) bool { _, old := older[pod]; return old })
}

// observer looks at the pods.
type observer struct {
	env   *suite.Suite
	seen  map[string]bool // each pod that ran
	shown frame           // the last line of each pod
}

func (o *observer) look(ctx context.Context) (frame, error) {
	list, err := o.env.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + workload})
	if err != nil {
		return nil, err
	}
	f := frame{}
	for i := range list.Items {
		pod := &list.Items[i]
		r := row{id: nothing, state: "starts", says: o.says(pod)}
		if id, has := pod.Annotations[receipt.IDKey]; has {
			r.id = id
		}
		switch {
		case pod.DeletionTimestamp != nil:
			r.state = stops
		case len(pod.Spec.SchedulingGates) > 0:
			r.state = waits
		case suite.Ready(pod):
			r.state = runs
			o.seen[pod.Name] = true
		}
		f[pod.Name] = r
	}
	return f, nil
}

// says returns the last line of a pod's log.
func (o *observer) says(pod *corev1.Pod) string {
	log, _ := os.ReadFile(o.env.Node.Logs(pod.Namespace, pod.Name, workload)) // no log is no line
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return lines[len(lines)-1]
}

// news returns a line for each pod that is not as it was shown.
func (o *observer) news(now frame) (lines []string) {
	for _, pod := range slices.Sorted(maps.Keys(now)) {
		if r := now[pod]; r != o.shown[pod] {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("%-24s id %-2s %-16s %s", pod, r.id, r.state, r.says), " "))
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(o.shown)) {
		if _, there := now[pod]; !there {
			lines = append(lines, fmt.Sprintf("%-24s id %-2s is gone", pod, o.shown[pod].id))
		}
	}
	o.shown = now
	return lines
}
