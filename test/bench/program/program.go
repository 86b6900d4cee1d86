// Package program runs idalloc-controller for benchmarks.
package program

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// Build builds the controller as it is released, into dir, and returns its path.
func Build(ctx context.Context, dir string) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "idalloc-controller")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "./cmd/idalloc-controller") //nolint:gosec // the folder of the control plane
	cmd.Dir, cmd.Stderr = filepath.Join(root, "controller"), os.Stderr
	return path, cmd.Run()
}

// Controller is a controller that runs.
type Controller struct {
	// Metrics is where its metrics are.
	Metrics string

	cmd *exec.Cmd
}

// Start starts the controller at path, for one namespace.
func Start(ctx context.Context, path, kubeconfig, namespace string) (*Controller, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	c := &Controller{Metrics: "http://" + address + "/metrics"}
	c.cmd = exec.CommandContext(ctx, path, "--kubeconfig="+kubeconfig, "--namespace="+namespace, "--leader-election-namespace="+namespace, //nolint:gosec // what Build made
		"--metrics-address="+address, "--health-address=0")
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
