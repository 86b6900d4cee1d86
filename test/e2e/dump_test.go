//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
)

// ownerState is what idalloc wrote on the Deployment, and who wrote it when.
const ownerState = `generation {.metadata.generation}{"\n"}assignment {.metadata.annotations.idalloc\.dev/assignment}{"\n"}` +
	`handover {.metadata.annotations.idalloc\.dev/handover}{"\n"}partitions {.metadata.annotations.idalloc\.dev/partition-owners}{"\n"}` +
	`{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.time}{"\n"}{end}`

// dump writes what is needed to understand a failure.
func (w *workload) dump(ctx context.Context) {
	showMachine()
	w.show(ctx, []string{"get", "nodes", "-o", "custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key,READY:.status.conditions[?(@.type=='Ready')].status"})
	for _, args := range [][]string{
		{"deployment", name, "--show-managed-fields", "-o", "jsonpath=" + ownerState},
		{"replicasets,pods", "-o", "wide", "-L", idLabel},
		{"leases", "-o", "wide"},
		{"pods", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.annotations}{"\n"}{end}`},
		{"events", "--sort-by=.lastTimestamp"},
	} {
		w.show(ctx, append([]string{"get"}, args...))
	}
	for _, which := range []string{"--previous=false", "--previous=true"} {
		w.show(ctx, []string{
			"logs", "-l", "app.kubernetes.io/name=" + name, "--all-containers", "--prefix", "--tail=40", "--max-log-requests=30", "--ignore-errors", which,
		})
	}
}

func (w *workload) show(ctx context.Context, args []string) {
	out, err := w.kubectl(ctx, args...)
	GinkgoWriter.Printf("\n$ kubectl %v\n%s\n", args, out)
	if err != nil {
		GinkgoWriter.Println(err)
	}
}

// showMachine shows which parts of the cluster do not run, and how busy this machine is.
func showMachine() {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("CLUSTER_PIDS"), "*.pid")) // the pattern is right
	for _, file := range files {
		part := strings.TrimSuffix(filepath.Base(file), ".pid")
		pid, err := cluster{pids: filepath.Dir(file)}.pid(part)
		if err == nil {
			err = syscall.Kill(pid, 0)
		}
		if err != nil {
			GinkgoWriter.Printf("\n%s does not run: %v\n", part, err)
		}
	}
	for _, file := range []string{"/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"} {
		if text, err := os.ReadFile(file); err == nil { //nolint:gosec // fixed
			GinkgoWriter.Printf("\n%s: %s", file, text)
		}
	}
}
