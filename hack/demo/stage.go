package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	workload = "worker"
	idsDir   = "/var/run/idalloc"
	httpPort = 8089
	// probePeriod is short for a readiness probe. A pod that has to move must still be Ready when Kubernetes chooses which
	// pods to delete, because it deletes those first that are not.
	probePeriod   = 500 * time.Millisecond
	probeFailures = 3
)

// stage is what the demo plays on: a cluster, a namespace, and who looks at it.
type stage struct {
	display  *display
	env      *suite.Suite
	ns       *suite.Namespace
	observer *observer
	dir      string // of the workload's program
	probes   string // directory of the programs' logs
	worker   string // the workload's program
	logger   string // runs it and logs what it reads
}

// boot builds the programs and starts the cluster.
func (s *stage) boot(ctx context.Context) (err error) {
	begin := time.Now()
	s.display.say("idalloc gives every replica of a plain Deployment an id of its own, 0 to count-1, and",
		"keeps it that way. First a local Kubernetes: real etcd, API server and controllers.",
		"Pods run as processes of this machine; slowed down for the eye, they take a second to",
		"start and two to stop.", "")
	if s.dir, err = os.MkdirTemp("", "idalloc-demo-"); err != nil {
		return err
	}
	if s.probes, err = os.MkdirTemp(s.dir, "probes-"); err != nil {
		return err
	}
	s.display.say("  building the idalloc command and the example program")
	if s.worker, err = suite.Build(ctx, s.dir, "./examples/fileworker"); err != nil {
		return err
	}
	if s.logger, err = suite.Build(ctx, s.dir, "./test/worker"); err != nil {
		return err
	}
	if s.env, err = suite.Start(ctx, suite.Options{ProbePeriod: probePeriod, Log: s.bootLog()}); err != nil {
		return err
	}
	if s.ns, err = s.env.NewNamespace(ctx); err != nil {
		return err
	}
	if s.observer, err = observe(ctx, s.env, s.ns); err != nil {
		return err
	}
	s.display.say(tick+" local Kubernetes is up: "+seconds(time.Since(begin)), "")
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

// podSpec is the layout of config/examples/files: an init container that waits for an id, the program, which reads files,
// and the watcher, which keeps the files true. The pods are slowed down for the eye.
func (s *stage) podSpec() *corev1.PodSpec {
	worker := suite.Container("worker", s.logger, "files", s.worker)
	worker.Env = append(worker.Env, corev1.EnvVar{Name: "IDALLOC_DIR", Value: idsDir}, corev1.EnvVar{Name: "PROBE_DIR", Value: s.probes})
	watcher := suite.Container("idalloc", s.env.Binary, "watch", "--dir", idsDir, "--http-address", fmt.Sprintf("$(POD_IP):%d", httpPort))
	watcher.ReadinessProbe = &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(httpPort)}},
		FailureThreshold: probeFailures,
	}
	worker.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sleep", "2"}}}}
	spec := suite.PodSpec(worker, watcher)
	initialize := suite.Container("idalloc-init", s.env.Binary, "init", "--dir", idsDir)
	spec.InitContainers = []corev1.Container{suite.Container("slow-start", "/bin/sleep", "1"), initialize}
	suite.Share(spec, idsDir)
	return spec
}

// bootLog shows which program of the control plane was started.
func (s *stage) bootLog() logr.Logger {
	started := regexp.MustCompile(`"msg"="started" "program"="([^"]+)"`)
	return funcr.New(func(_, line string) {
		if found := started.FindStringSubmatch(line); found != nil {
			s.display.say("  started " + found[1])
		}
	}, funcr.Options{Verbosity: 1})
}
