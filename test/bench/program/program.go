// Package program runs idalloc-controller for benchmarks.
package program

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// Build builds a program as it is released, from a module of the repository into dir, and returns its path.
func Build(ctx context.Context, dir, module, name string) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w", "-o", path, "./cmd/"+name) //nolint:gosec // the folder of the control plane
	cmd.Dir, cmd.Env, cmd.Stderr = filepath.Join(root, module), append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	return path, cmd.Run()
}

// Controller is a controller that runs.
type Controller struct {
	// metrics is where its metrics are.
	metrics string
	cmd     *exec.Cmd
}

// For builds and starts a controller for one namespace of a control plane.
func For(ctx context.Context, plane *controlplane.ControlPlane, namespace string) (*Controller, error) {
	path, err := Build(ctx, plane.Dir(), "controller", "idalloc-controller")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := plane.Kubeconfig(controlplane.Admin)
	if err != nil {
		return nil, err
	}
	return Start(ctx, path, kubeconfig, namespace)
}

// Start starts the controller at path, whose election is in the namespace, with further flags.
func Start(ctx context.Context, path, kubeconfig, namespace string, flags ...string) (*Controller, error) {
	address, err := controlplane.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	c := &Controller{metrics: "http://" + address + "/metrics"}
	flags = append(flags, "--kubeconfig="+kubeconfig, "--leader-election-namespace="+namespace, "--metrics-address="+address, "--health-address=0")
	c.cmd = exec.CommandContext(ctx, path, flags...) //nolint:gosec // what Build made
	return c, c.cmd.Start()
}

// PID is that of its process.
func (c *Controller) PID() int { return c.cmd.Process.Pid }

// Stop blocks until the process has ended. It may be called more than once.
func (c *Controller) Stop() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Signal(os.Interrupt)
		_ = c.cmd.Wait() // an interrupt ends it with a code
	}
}

// Read returns its metrics, by name and labels.
func (c *Controller) Read(ctx context.Context) (map[string]float64, error) {
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

// Sent returns how many requests it has sent, by method.
func (c *Controller) Sent(ctx context.Context) (map[string]int, error) {
	all, err := c.Read(ctx)
	sent := map[string]int{}
	for name, n := range all {
		if m := method.FindStringSubmatch(name); m != nil {
			sent[m[1]] += int(n)
		}
	}
	return sent, err
}

var method = regexp.MustCompile(`^rest_client_requests_total\{.*method="([A-Z]+)"`)
