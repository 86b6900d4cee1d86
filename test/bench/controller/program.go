package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/test/bench/program"
)

// running is a controller that runs.
type running struct {
	*program.Controller

	out io.Writer
}

// start starts a controller for one namespace.
func (b *bench) start(ctx context.Context, ns string) (*running, error) {
	c, err := program.Start(ctx, b.program, b.kubeconfig, ns)
	return &running{c, b.out}, err
}

// gave waits until the controller says that so many pods got ids. To list the pods would take the time that is measured.
func (c *running) gave(ctx context.Context, pods int) error {
	return wait.PollUntilContextCancel(ctx, max(polling, time.Duration(pods)*perPod), true, func(ctx context.Context) (bool, error) {
		m, _ := c.Read(ctx) // it does not listen yet
		return m["idalloc_controller_assign_seconds_count"] >= float64(pods), nil
	})
}

// tell prints the controller's memory and time, and what it sends while it has nothing to do.
func (c *running) tell(ctx context.Context, rest time.Duration) error {
	if rest > 0 {
		if err := c.tellRest(ctx, rest); err != nil {
			return err
		}
	}
	m, err := c.Read(ctx)
	if err != nil {
		return err
	}
	is, err := program.ReadMemory(c.PID())
	if err != nil {
		return err
	}
	const kibi, mebi = 1 << 10, 1 << 20
	_, _ = fmt.Fprintf(c.out, "the controller: heap %.0f MiB, resident %.0f MiB, at most %.0f MiB; %.1f s of CPU\n", m["go_memstats_heap_alloc_bytes"]/mebi,
		is.Resident/kibi, is.Peak/kibi, m["process_cpu_seconds_total"])
	return nil
}

// tellRest waits until nothing was sent for ten seconds but updates, which only the election sends, and then counts.
func (c *running) tellRest(ctx context.Context, rest time.Duration) error {
	const quiet = 10 * time.Second
	for busy := true; busy; {
		sent, err := c.sent(ctx, quiet)
		if err != nil {
			return err
		}
		updates := sent["PUT"]
		delete(sent, "PUT")
		busy = len(sent) > 0 || updates == 0
	}
	sent, err := c.sent(ctx, rest)
	_, _ = fmt.Fprintf(c.out, "at rest, requests in %v by method: %v; the controller updates nothing but its Lease\n", rest, sent)
	return err
}

// sent returns how many requests of each method the controller sends within a time.
func (c *running) sent(ctx context.Context, within time.Duration) (map[string]int, error) {
	before, err := c.Sent(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(within):
	}
	after, err := c.Sent(ctx)
	maps.DeleteFunc(after, func(method string, n int) bool { return n <= before[method] })
	for method := range after {
		after[method] -= before[method]
	}
	return after, err
}

// measureObserver prints the memory of an observer that follows the pods of a namespace.
func (b *bench) measureObserver(ctx context.Context, ns string) error {
	path, err := program.Build(ctx, filepath.Dir(b.program), ".", "kubectl-idalloc")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, "observe", "--kubeconfig="+b.kubeconfig, "--namespace="+ns) //nolint:gosec // what Build made
	cmd.Stdout, cmd.Stderr = b.out, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	is, err := program.SettledMemory(ctx, cmd.Process.Pid)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if err != nil {
		return err
	}
	const kibi = 1 << 10
	_, _ = fmt.Fprintf(b.out, "an observer of %d pods: resident %.0f MiB, at most %.0f MiB\n", b.pods, is.Resident/kibi, is.Peak/kibi)
	return nil
}
