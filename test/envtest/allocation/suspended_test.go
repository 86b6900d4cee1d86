package allocation

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/test/overlap"
)

// strictWorkerDir names the probe directory to the process that TestStrictWorker is.
const strictWorkerDir = "STRICT_WORKER_DIR"

// TestStrictWorker is no test: the specs start it as the process of a pod, to suspend it.
func TestStrictWorker(t *testing.T) {
	dir := os.Getenv(strictWorkerDir)
	if dir == "" {
		t.Skip("it is a process that the specs start")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	i, err := idalloc.Start(ctx, idalloc.Options{FenceAfter: fenceAfter})
	if err != nil {
		t.Fatal(err)
	}
	out, err := overlap.NewWriter(dir, os.Getenv("POD_NAME"), os.Getenv("POD_UID"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.Until(ctx.Done(), showing(i)), out.Close()); err != nil {
		t.Fatal(err)
	}
	_ = i.Close(context.Background()) // its pod may be gone
}

// strictProcess starts a process of its own for a pod.
func (w *workload) strictProcess(ctx context.Context, pod string) *exec.Cmd {
	GinkgoHelper()
	config, err := w.Config(ctx)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := env.ControlPlane.WriteKubeconfig("strict_"+w.Name, config)
	Expect(err).NotTo(HaveOccurred())
	program, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(program, "-test.run=^TestStrictWorker$") //nolint:gosec,noctx // this test; the cleanup ends it
	cmd.Env = append(os.Environ(), strictWorkerDir+"="+w.probe, "POD_NAME="+pod, "POD_NAMESPACE="+w.Name, "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = GinkgoWriter, GinkgoWriter
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(cmd.Process.Signal(syscall.SIGCONT)).To(Succeed())
		Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		_ = cmd.Wait() // how it ended is not what the spec is about
	})
	return cmd
}

// samples returns what a pod logged.
func (w *workload) samples(pod string) []overlap.Record {
	GinkgoHelper()
	all, err := overlap.Read(w.probe)
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(all, func(r overlap.Record) bool { return r.Pod != pod })
}
