package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	workload    = "worker"
	idsDir      = "/var/run/idalloc"
	httpPort    = 8089
	bootTimeout = 2 * time.Minute
	// probePeriod is short for a readiness probe, but a pod that has to move must still be Ready when
	// Kubernetes chooses whom to delete: a pod that is not would be the first to go.
	probePeriod   = 500 * time.Millisecond
	probeFailures = 3
)

// stage is what the demo plays on: a cluster, a namespace, and who looks at it.
type stage struct {
	display  display
	env      *suite.Suite
	ns       *suite.Namespace
	observer *observer
	dir      string // of the workload's program
	probes   string // directory of the workloads' logs
	worker   string // the workload's program
	end      context.CancelFunc
	drawn    chan struct{}
}

// boot builds the programs and starts the cluster.
func (s *stage) boot(ctx context.Context) (err error) {
	begin := time.Now()
	s.display.say("idalloc gives every replica of a plain Deployment an id of its own, 0 to count-1, and keeps it that way.",
		"First a local Kubernetes: real etcd, API server and controllers. Pods run as processes of this machine; "+
			"slowed down for the eye, they take a second to start and two to stop.", "")
	ctx, cancel := context.WithTimeoutCause(ctx, bootTimeout, errors.New("the local control plane did not start"))
	defer cancel()
	if s.dir, err = os.MkdirTemp("", "idalloc-demo-"); err != nil {
		return err
	}
	if s.probes, err = os.MkdirTemp(s.dir, "probes-"); err != nil {
		return err
	}
	s.display.progress("building the idalloc command and the example workload")
	if s.worker, err = suite.Build(ctx, s.dir, "./examples/fileworker"); err != nil {
		return err
	}
	if s.env, err = suite.Start(ctx, suite.Options{ProbePeriod: probePeriod, Log: logr.New(bootLog{s.display})}); err != nil {
		return err
	}
	if s.ns, err = s.env.NewNamespace(ctx); err != nil {
		return err
	}
	if err := s.watch(ctx); err != nil {
		return err
	}
	s.display.progress("")
	s.display.say(fmt.Sprintf("%s local Kubernetes is up: %s", tick, seconds(time.Since(begin))), "")
	return nil
}

// watch begins to follow the namespace and to draw what is there, until stop.
func (s *stage) watch(ctx context.Context) (err error) {
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	if s.observer, err = newObserver(ctx, s.env, s.ns.Name); err != nil {
		return err
	}
	s.drawn = make(chan struct{})
	go func() {
		defer close(s.drawn)
		ticker := time.NewTicker(refresh)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				s.display.draw(s.observer.frame())
			}
		}
	}()
	return nil
}

// stop ends everything. It may be called when boot failed halfway.
func (s *stage) stop() error {
	var errs []error
	if s.end != nil {
		s.end()
	}
	if s.drawn != nil {
		<-s.drawn
	}
	if s.observer != nil {
		s.observer.wait()
	}
	if s.env != nil {
		errs = append(errs, s.env.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// podSpec is the layout of config/examples/files: an init container that waits for an id, the
// workload, which reads files, and the watcher, which keeps the files true. The pods are slowed down
// for the eye.
func (s *stage) podSpec() *corev1.PodSpec {
	worker := suite.Container("worker", s.worker)
	worker.Env = append(worker.Env, corev1.EnvVar{Name: "IDALLOC_DIR", Value: idsDir}, corev1.EnvVar{Name: "PROBE_DIR", Value: s.probes})
	watcher := suite.Container("idalloc", s.env.Binary, "watch", "--dir", idsDir, "--http-address", fmt.Sprintf("$(POD_IP):%d", httpPort))
	watcher.ReadinessProbe = &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(httpPort)}},
		FailureThreshold: probeFailures,
	}
	worker.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sleep", "2"}}}}
	spec := suite.PodSpec(worker, watcher)
	spec.InitContainers = []corev1.Container{
		suite.Container("slow-start", "/bin/sleep", "1"),
		suite.Container("idalloc-init", s.env.Binary, "init", "--dir", idsDir),
	}
	suite.Share(spec, idsDir)
	return spec
}

// bootLog shows which program of the control plane was started.
type bootLog struct{ display display }

func (bootLog) Init(logr.RuntimeInfo)       {}
func (bootLog) Enabled(int) bool            { return true }
func (bootLog) Error(error, string, ...any) {}

func (l bootLog) WithValues(...any) logr.LogSink { return l }
func (l bootLog) WithName(string) logr.LogSink   { return l }

func (l bootLog) Info(_ int, message string, values ...any) {
	for i := 0; i+1 < len(values); i += 2 {
		if message == "started" && values[i] == "program" {
			l.display.progress(fmt.Sprintf("started %v", values[i+1]))
		}
	}
}
