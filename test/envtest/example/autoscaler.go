package example

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/process"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	// Scaled is the name of the workload that the Role of autoscaler/config names.
	Scaled = "worker"
	// AutoscalerAccount is the account that has this Role.
	AutoscalerAccount = "idalloc-autoscaler"
)

// Autoscaler is an idalloc-autoscaler of the Deployment Scaled, a process of this machine with the permissions of
// autoscaler/config.
type Autoscaler struct {
	dir     string
	group   *process.Group
	running *process.Process
}

// StartAutoscaler builds and starts an autoscaler. args say what a pod works off and where the loads are read. Its waits are short.
func StartAutoscaler(ctx context.Context, s *suite.Suite, namespace *suite.Namespace, args ...string) (*Autoscaler, error) {
	a := &Autoscaler{}
	if err := a.start(ctx, s, namespace, args); err != nil {
		return nil, errors.Join(fmt.Errorf("example: autoscaler: %w", err), a.Stop())
	}
	return a, nil
}

func (a *Autoscaler) start(ctx context.Context, s *suite.Suite, namespace *suite.Namespace, args []string) (err error) {
	if a.dir, err = os.MkdirTemp("", "idalloc-autoscaler-"); err != nil {
		return err
	}
	if a.group, err = process.NewGroup(); err != nil {
		return err
	}
	program, kubeconfig, err := autoscaler(ctx, s, namespace, a.dir)
	if err != nil {
		return err
	}
	log, err := os.Create(a.log())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	args = append([]string{
		"run", "deployment/" + Scaled, "-n", namespace.Name, "--http-address=", "--log-format=console", "--max-replicas=20",
		"--period=500ms", "--window=15s", "--every=2s", "--after-up=5s", "--after-down=5s",
	}, args...)
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // the program under test, which outlives ctx
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAME=autoscaler-0")
	a.running, err = a.group.Start(cmd)
	return err
}

// autoscaler builds the program, and returns its path and how its account reaches the API server.
func autoscaler(ctx context.Context, s *suite.Suite, namespace *suite.Namespace, dir string) (program, kubeconfig string, err error) {
	config, err := AutoscalerConfig(ctx, s, namespace)
	if err != nil {
		return "", "", err
	}
	if kubeconfig, err = s.ControlPlane.WriteKubeconfig("autoscaler_"+namespace.Name, config); err != nil {
		return "", "", err
	}
	program, err = suite.Build(ctx, dir, "./autoscaler/cmd/idalloc-autoscaler")
	return program, kubeconfig, err
}

// AutoscalerCommand builds the autoscaler's program in a directory, and returns a function that runs one command of it, with the permissions of
// autoscaler/config, and returns what it printed.
func AutoscalerCommand(ctx context.Context, s *suite.Suite, namespace *suite.Namespace, dir string) (run func(args ...string) (string, error), err error) {
	program, kubeconfig, err := autoscaler(ctx, s, namespace, dir)
	if err != nil {
		return nil, fmt.Errorf("example: autoscaler: %w", err)
	}
	return func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the program under test
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("example: idalloc-autoscaler %v: %w: %s%s", args, err, out, errs.String())
		}
		return string(out), err
	}, nil
}

// AutoscalerConfig makes what autoscaler/config makes for the program, its account with the rules of its Role and its Lease, and returns a
// connection as that account. The token names a pod, as one that a kubelet mounts does. The pod never runs.
func AutoscalerConfig(ctx context.Context, s *suite.Suite, namespace *suite.Namespace) (*rest.Config, error) {
	role, err := suite.Manifest[*rbacv1.Role]("autoscaler/config/base/role.yaml")
	if err != nil {
		return nil, err
	}
	lease, err := suite.Manifest[*coordinationv1.Lease]("autoscaler/config/base/lease.yaml")
	if err != nil {
		return nil, err
	}
	if err := namespace.Grant(ctx, AutoscalerAccount, role.Rules...); err != nil {
		return nil, err
	}
	if _, err := s.Client.CoordinationV1().Leases(namespace.Name).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	pod, err := s.Client.CoreV1().Pods(namespace.Name).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: AutoscalerAccount},
		Spec: corev1.PodSpec{
			ServiceAccountName: AutoscalerAccount, Containers: []corev1.Container{{Name: "main", Image: "none"}},
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "test.idalloc.dev/never"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return s.ControlPlane.PodConfig(ctx, pod)
}

func (a *Autoscaler) log() string { return filepath.Join(a.dir, "log") }

// Log returns what it said.
func (a *Autoscaler) Log() string {
	text, err := os.ReadFile(a.log())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop asks the autoscaler to end, and waits until it has.
func (a *Autoscaler) Stop() error {
	var errs []error
	if a.running != nil {
		a.running.Signal(syscall.SIGTERM)
		<-a.running.Done()
		if code := a.running.ExitCode(); code != 0 {
			errs = append(errs, fmt.Errorf("the autoscaler ended with exit code %d: %s", code, a.Log()))
		}
	}
	if a.group != nil {
		a.group.Close()
	}
	return errors.Join(append(errs, os.RemoveAll(a.dir))...)
}

// Swing has the load of an autoscaled workload grow fourfold and fall back, and returns the most ids that owned partitions. It waits each time
// until as many pods as the load needs own all partitions, and at the end until there are no more than at the beginning.
func (w *Workload) Swing(ctx context.Context, load *Load, partitions int, base, capacity float64) (most int, err error) {
	few, many := int(math.Ceil(base/capacity)), int(math.Ceil(4*base/capacity))
	until := func(enough func(pods int) bool) error {
		_, err := w.Until(ctx, func(owners placement.Owners) bool {
			owned := 0
			for _, set := range owners {
				owned += set.Len()
			}
			most = max(most, len(owners))
			return owned == partitions && enough(len(owners))
		})
		return err
	}
	if err := until(func(pods int) bool { return pods == few }); err != nil {
		return most, err
	}
	load.Set(4 * base)
	if err := until(func(pods int) bool { return pods >= many }); err != nil {
		return most, err
	}
	load.Set(base)
	if err := until(func(pods int) bool { return pods == few }); err != nil {
		return most, err
	}
	n, err := w.Replicas(ctx)
	if err == nil && n != few {
		err = fmt.Errorf("example: %s has %d replicas, want %d", w.Name, n, few)
	}
	return most, errors.Join(err, w.Running(ctx, few))
}
