package envtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/specs"
)

var _ = Describe("the program that is shipped", func() {
	program := os.Getenv("CONTROLLER_FAILPOINTS")
	if program == "" {
		return // hack/failpoints builds it
	}
	specs.BreakWrites("gives each id to one pod, and none waits, whichever of its writes fails", 15, func(ctx SpecContext, fault string, number int) []string {
		kubeconfig, err := plane.Kubeconfig(controlplane.Admin)
		Expect(err).NotTo(HaveOccurred())
		return history(ctx, []string{program, "--kubeconfig", kubeconfig}, fault, number)
	})
})

// history has a Deployment made, scaled, updated and scaled down while one write of the controller fails. It returns which one, or none if there are not as
// many.
func history(ctx context.Context, program []string, fault string, number int) (hits []string) {
	GinkgoHelper()
	ns, file := newNamespace(ctx), filepath.Join(GinkgoT().TempDir(), "hit")
	program = append(program, "--namespace", ns, "--leader-election=false", "--metrics-address=0", "--health-address=0")
	defer kubeletUntil(ctx, ns)()
	defer again(ctx, program, fmt.Sprintf("IDALLOC_FAILPOINT=%d:%s:%s", number, fault, file))()
	create(ctx, ns, deployment(2))
	rolled(ctx, ns, "", 2)
	patch(ctx, ns, `{"spec":{"replicas":3}}`)
	rolled(ctx, ns, "", 3)
	patch(ctx, ns, fmt.Sprintf(versioned, "2", "null"))
	rolled(ctx, ns, "2", 3)
	patch(ctx, ns, `{"spec":{"replicas":1}}`)
	rolled(ctx, ns, "2", 1)
	Expect(client.AppsV1().Deployments(ns).Delete(ctx, worker, metav1.DeleteOptions{})).To(Succeed())
	text, err := os.ReadFile(file) //nolint:gosec // a file of this spec
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return []string{string(text)}
}

// again runs a program, and once more without the variable each time that it ends, until stop is called.
func again(ctx context.Context, program []string, variable string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		runtime.LockOSThread() // the program ends with the thread that started it
		for env := append(os.Environ(), variable); ctx.Err() == nil; env = os.Environ() {
			cmd := exec.CommandContext(ctx, program[0], program[1:]...) //nolint:gosec // hack/failpoints built it
			cmd.Env, cmd.Stderr = env, GinkgoWriter
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			_ = cmd.Run() // it is killed, by the fault or here
		}
	}()
	return func() { cancel(); <-ended }
}
