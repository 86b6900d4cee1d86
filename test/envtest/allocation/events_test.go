package allocation

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// kubectl runs the real one as the administrator, and returns what it printed.
func (w *workload) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	kubectl := filepath.Join(env.ControlPlane.Assets(), "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		var lerr error
		kubectl, lerr = exec.LookPath("kubectl") // KUBEBUILDER_ASSETS of another build may have none
		Expect(lerr).NotTo(HaveOccurred(), "kubectl is neither in %s nor in PATH", env.ControlPlane.Assets())
	}
	kubeconfig, err := env.ControlPlane.Kubeconfig(controlplane.Admin)
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", kubeconfig, "--namespace", w.Name}, args...)...) //nolint:gosec // the arguments are the test's
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, &stderr)
	return string(out)
}

// told returns our Events about the owner.
func (w *workload) told(ctx context.Context) []corev1.Event {
	GinkgoHelper()
	events, err := env.Client.CoreV1().Events(w.Name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + w.ref.Kind + ",involvedObject.name=" + w.ref.Name})
	Expect(err).NotTo(HaveOccurred())
	var ours []corev1.Event
	for _, e := range events.Items {
		if e.Source.Component == "idalloc" {
			ours = append(ours, e)
		}
	}
	return ours
}

var _ = Describe("Events", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, kinds.Deployment)
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.podSpec()))).To(Succeed())
		w.settled(ctx, 3)
	})

	It("are shown by kubectl describe, and name the annotation", func(ctx SpecContext) {
		w.kubectl(ctx, "annotate", "--overwrite", "deployment", "worker", assignment.Key+"={}")
		Eventually(func() string { return w.kubectl(ctx, "describe", "deployment", "worker") }).WithContext(ctx).Should(MatchRegexp(
			`Normal\s+AssignmentRestored\s.*idalloc\s+annotation idalloc.dev/assignment was changed or removed: .* no work stopped`))
		w.settled(ctx, 3)
		Expect(w.told(ctx)).To(HaveEach(HaveField("InvolvedObject.UID", w.owner(ctx).UID)))
	})
})
