package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// build returns the program that is measured: the one that is released.
func build(ctx context.Context, dir string) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "idalloc-controller")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w", "-o", program, "./cmd/idalloc-controller") //nolint:gosec // the folder of the control plane
	cmd.Dir, cmd.Stderr = filepath.Join(root, "controller"), os.Stderr
	return program, cmd.Run()
}

// running is a controller that runs.
type running struct {
	out     io.Writer
	cmd     *exec.Cmd
	metrics string
}

// start starts a controller for one namespace.
func (b *bench) start(ctx context.Context, ns string) (*running, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	c := &running{out: b.out, metrics: "http://" + address + "/metrics"}
	c.cmd = exec.CommandContext(ctx, b.program, "--kubeconfig="+b.kubeconfig, "--leader-election-namespace="+ns, //nolint:gosec // what build made
		"--metrics-address="+address, "--health-address=0")
	return c, c.cmd.Start()
}

// stop may be called more than once.
func (c *running) stop() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Signal(os.Interrupt)
		_ = c.cmd.Wait()
	}
}

// gave waits until the controller says that so many pods got ids. To list the pods would take the time that is measured.
func (c *running) gave(ctx context.Context, pods int) error {
	return wait.PollUntilContextCancel(ctx, max(polling, time.Duration(pods)*perPod), true, func(ctx context.Context) (bool, error) {
		m, _ := c.read(ctx) // it does not listen yet
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
	m, err := c.read(ctx)
	if err != nil {
		return err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return err
	}
	const mebi = 1 << 20
	_, _ = fmt.Fprintf(c.out, "the controller: heap %.0f MiB, resident %s, at most %s; %.1f s of CPU\n", m["go_memstats_heap_alloc_bytes"]/mebi,
		mebibytes(status, "VmRSS"), mebibytes(status, "VmHWM"), m["process_cpu_seconds_total"])
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
func (c *running) sent(ctx context.Context, within time.Duration) (map[string]float64, error) {
	before, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(within):
	}
	after, err := c.read(ctx)
	sent := map[string]float64{}
	method := regexp.MustCompile(`^rest_client_requests_total\{.*method="([A-Z]+)"`)
	for name, n := range after {
		if m := method.FindStringSubmatch(name); m != nil && n > before[name] {
			sent[m[1]] += n - before[name]
		}
	}
	return sent, err
}

// read returns the controller's metrics.
func (c *running) read(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // to compress takes the controller longer than to count
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // read only
	all := map[string]float64{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			all[name] = n
		}
	}
	return all, lines.Err()
}

// mebibytes returns a line of /proc/PID/status.
func mebibytes(status []byte, name string) string {
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(status)
	if m == nil {
		return "unknown"
	}
	kibi, _ := strconv.Atoi(string(m[1])) // digits
	return fmt.Sprintf("%d MiB", kibi/1024)
}
