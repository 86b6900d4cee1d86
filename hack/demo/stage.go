package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// stage is what the demo plays on: a cluster with a controller, and a directory.
type stage struct {
	out        io.Writer
	env        *suite.Suite
	kubeconfig string
	dir        string
	probes     string // directory of the programs' logs
}

func (s *stage) say(lines ...string) { _, _ = io.WriteString(s.out, strings.Join(lines, "\n")+"\n") }

// boot builds the programs and starts the cluster.
func (s *stage) boot(ctx context.Context) (err error) {
	begin := time.Now()
	s.say("A local Kubernetes starts: real etcd, API server, controllers and kubectl, and",
		"idalloc-controller with its policies. The node is played: pods are processes of",
		"this machine, without containers.", "")
	if s.dir, err = os.MkdirTemp("", "idalloc-demo-"); err != nil {
		return err
	}
	if s.probes, err = os.MkdirTemp(s.dir, "probes-"); err != nil {
		return err
	}
	worker, err := suite.Build(ctx, s.dir, "./test/worker")
	if err != nil {
		return err
	}
	if s.env, err = suite.Start(ctx, suite.Options{Controller: true, SkipBinary: true, Images: map[string]string{workload: worker}}); err != nil {
		return err
	}
	if s.kubeconfig, err = s.env.ControlPlane.Kubeconfig(controlplane.Admin); err != nil {
		return err
	}
	s.say(tick+" Kubernetes and idalloc-controller run: "+seconds(time.Since(begin)), "")
	return nil
}

// stop ends everything. It may be called when boot failed halfway.
func (s *stage) stop() error {
	var errs []error
	if s.env != nil {
		errs = append(errs, s.env.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// wait keeps the cluster until ctx ends.
func (s *stage) wait(ctx context.Context) error {
	s.say("Use it in another terminal. Ctrl-C here ends it.", "",
		"  export KUBECONFIG="+s.kubeconfig, "  export PATH="+s.env.ControlPlane.Assets()+":$PATH")
	<-ctx.Done()
	return nil
}

// shell shows a command, runs it, and shows what it prints.
func (s *stage) shell(ctx context.Context, command string) error {
	s.say("  $ " + command)
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command) //nolint:gosec // the demo's own commands
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "PATH="+s.env.ControlPlane.Assets()+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		s.say("  " + strings.TrimRight(line, "\n"))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
