//go:build e2e

package e2e

import (
	"context"
	"os"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	controllerFolder = "../../config/controller"
	assignFolder     = "../../config/assign"
	assignLabel      = "idalloc.dev/assign"
	idKey            = "idalloc.dev/id"
)

var _ = Describe("A Deployment with a label, where the controller runs", Serial, Ordered, func() {
	BeforeAll(func(ctx SpecContext) { controllerByManifests(ctx) }, NodeTimeout(patience))

	It("has ids in the environment, and keeps them through a scale, a lost pod and a rollout with the default strategy", Label(mainFlow), func(ctx SpecContext) {
		w := prepare(ctx, files, 3, assigned)
		w.apply(ctx)
		before := w.held(ctx, 3)
		w.expectEnvironment(ctx)
		w.scale(ctx, "4")
		expectKept(before, w.held(ctx, 4))
		By("restarting a container, which sees the new count")
		Expect(w.variable(ctx, before[0], "IDALLOC_COUNT")).To(Equal("3"))
		_, _ = w.kubectl(ctx, "exec", before[0], "-c", name, "--", program, "crash") // the answer may be lost
		Eventually(w.variable).WithContext(ctx).WithArguments(before[0], "IDALLOC_COUNT").Should(Equal("4"))
		w.held(ctx, 4)
		Expect(w.kubectl(ctx, "delete", "pod", before[1], "--wait=false")).Error().NotTo(HaveOccurred())
		w.held(ctx, 4)
		w.restart(ctx)
		w.held(ctx, 4)
		w.expectEnvironment(ctx)
		w.verify(ctx)
	}, SpecTimeout(3*patience))

	controllerCases()
	countChanges()
	lostUpdates()
	uses()
	programs()
	neighbours()
})

// assigned takes out of the example with files what idalloc needs, and asks the controller for ids.
func assigned(s *appsv1.DeploymentSpec) {
	bare(s)
	s.Template.Annotations = nil
	delete(s.Template.Labels, injectLabel)
	s.Template.Labels[assignLabel] = "controller"
}

// controllerByManifests installs config/controller and config/assign until the specs end, and waits until both work.
func controllerByManifests(ctx context.Context) {
	GinkgoHelper()
	current := build{config: "../../config", controller: os.Getenv("E2E_CONTROLLER")}
	Expect(current.controller).NotTo(BeEmpty(), "set E2E_CONTROLLER to the controller's image; hack/e2e does")
	w := &workload{namespace: "idalloc-system"}
	manifests, err := w.kubectl(ctx, "kustomize", controllerFolder)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		Expect(w.kubectl(ctx, "delete", "-k", assignFolder, "--ignore-not-found")).Error().NotTo(HaveOccurred())
		Expect(w.kubectlIn(ctx, manifests, "delete", "--ignore-not-found", "-f", "-")).Error().NotTo(HaveOccurred())
	}, NodeTimeout(patience))
	Expect(w.kubectl(ctx, "apply", "-k", assignFolder)).Error().NotTo(HaveOccurred())
	current.applyController(ctx)
	inForce(ctx, metav1.NamespaceDefault, metav1.ObjectMeta{Labels: map[string]string{assignLabel: "controller"}}, HaveField("Spec.SchedulingGates", HaveLen(1)))
}

// expectEnvironment sees that each pod's variable has the id that its label says.
func (w *workload) expectEnvironment(ctx context.Context) {
	GinkgoHelper()
	pods, err := w.pods(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, p := range pods {
		Expect(p.Annotations).To(HaveKeyWithValue(idKey, p.Labels[idLabel]), p.Name)
		Expect(p.Spec.SchedulingGates).To(BeEmpty(), p.Name)
		Expect(w.variable(ctx, p.Name, "IDALLOC_ID")).To(Equal(p.Labels[idLabel]), p.Name)
		Expect(w.variable(ctx, p.Name, "IDALLOC_COUNT")).To(Equal(strconv.Itoa(len(pods))), p.Name)
	}
}

// variable returns a variable of the program's container.
func (w *workload) variable(ctx context.Context, pod, key string) (string, error) {
	out, err := w.kubectl(ctx, "exec", pod, "-c", name, "--", program, "variable", key)
	return strings.TrimSpace(out), err
}
