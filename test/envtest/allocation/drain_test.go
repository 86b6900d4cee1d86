package allocation

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// fenceAfter is long enough that a machine that is busy does not fence any pod.
const fenceAfter = 10 * time.Second

// drainByExec lets the watcher run a script that hears of the id in its environment.
func drainByExec(spec *corev1.PodSpec, script string) {
	watcher := &spec.Containers[1]
	watcher.Command = append(watcher.Command, "--drain-exec", "/bin/sh -c '"+script+"'")
}

func (w *workload) expectDraining(ctx SpecContext, pod string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		id, err := w.identity(ctx, *w.pod(ctx, pod))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(id.State).To(Equal(identity.StateDraining))
	}).WithContext(ctx).Should(Succeed())
}

var _ = Describe("a drain hook", func() {
	var (
		w    *workload
		spec *corev1.PodSpec
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, kinds.Deployment)
		spec = w.podSpec()
	})

	It("that is a command keeps the slot of a pod that is to hand it over until it exits with 0", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		gate, asked := filepath.Join(dir, "gate"), filepath.Join(dir, "asked")
		drainByExec(spec, `echo "$IDALLOC_ID $IDALLOC_COUNT" >>`+asked+`; while ! test -e `+gate+`; do sleep 0.1; done`)
		Expect(w.Create(ctx, suite.Deployment("worker", 1, spec))).To(Succeed())
		old := w.settled(ctx, 1)[0]
		w.restart(ctx) // with the default strategy and one replica, the new pod starts first
		w.expectDraining(ctx, old)
		Eventually(func() (string, error) {
			b, err := os.ReadFile(asked) //nolint:gosec // a file of the test
			return string(b), err
		}).WithContext(ctx).Should(Equal("0 1\n"))
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(0, old), "the work has not stopped")
		Expect(os.WriteFile(gate, nil, 0o600)).To(Succeed())
		Expect(w.settled(ctx, 1)[0]).NotTo(Equal(old))
	})
})

var _ = Describe("a fence hook", func() {
	var (
		w      *workload
		fenced string // the file that the hook appends the id to
		before map[int]string
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, kinds.Deployment, suite.StrictRules()...)
		fenced = filepath.Join(GinkgoT().TempDir(), "fenced")
		spec := w.sidecarSpec()
		watcher := &spec.InitContainers[0]
		watcher.Command = append(watcher.Command, "--fence-after="+fenceAfter.String(), "--fence-exec", `/bin/sh -c 'echo "$IDALLOC_ID" >>`+fenced+`'`)
		Expect(w.Create(ctx, suite.Deployment("worker", 1, spec))).To(Succeed())
		before = w.settled(ctx, 1)
	})

	It("runs when the watcher has lost contact, and the id comes back with the API server", Label(nightly), Serial, func(ctx SpecContext) {
		pod := w.pod(ctx, before[0])
		Expect(fenced).NotTo(BeAnExistingFile())
		env.ControlPlane.KillAPIServer()
		Eventually(func(g Gomega) {
			id, err := w.identity(ctx, *pod)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(id.State).To(Equal(identity.StateFenced))
			b, err := os.ReadFile(fenced) //nolint:gosec // a file of the test
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(b)).To(Equal("0\n"))
		}).WithContext(ctx).Should(Succeed())
		Expect(env.ControlPlane.StartAPIServer(ctx)).To(Succeed())
		Expect(w.settled(ctx, 1)).To(Equal(before))
	})

	It("runs first when the watcher restarts, because no watcher looked meanwhile", Label(nightly), func(ctx SpecContext) {
		Expect(env.Node.Signal(w.Name, before[0], "idalloc", syscall.SIGKILL)).To(Succeed())
		Eventually(func() ([]byte, error) {
			return os.ReadFile(fenced) //nolint:gosec // a file of the test
		}).WithContext(ctx).Should(BeEquivalentTo("0\n"))
		Expect(w.settled(ctx, 1)).To(Equal(before))
	})
})
