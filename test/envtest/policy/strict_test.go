package policy

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// strictRule is the one that config/strict adds.
func strictRule() rbacv1.PolicyRule {
	GinkgoHelper()
	root, err := controlplane.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, "config", "strict", "kustomization.yaml")) //nolint:gosec // a file of this repository
	Expect(err).NotTo(HaveOccurred())
	var component struct {
		Patches []struct{ Patch string }
	}
	Expect(yaml.Unmarshal(text, &component)).To(Succeed())
	Expect(component.Patches).To(HaveLen(1))
	var patch []struct{ Value rbacv1.PolicyRule }
	Expect(yaml.Unmarshal([]byte(component.Patches[0].Patch), &patch)).To(Succeed())
	Expect(patch).To(HaveLen(1))
	return patch[0].Value
}

// labelled selects the workload's Leases, as kubectl's -l does.
func (w *workload) labelled() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: receipt.OwnerLabel + "=" + assignment.OwnerLabelValue(w.ref.String())}
}

// leases are those of the workload.
func (w *workload) leases(ctx context.Context) ([]coordinationv1.Lease, error) {
	list, err := env.Client.CoordinationV1().Leases(w.Name).List(ctx, w.labelled())
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// held waits until the Lease of each slot of n says that the pod has it that the map says, and returns these pods by slot.
func (w *workload) held(ctx context.Context, n int) assignment.Slots {
	GinkgoHelper()
	var slots assignment.Slots
	Eventually(func(g Gomega) {
		slots = w.settled(ctx, n)
		leases, err := w.leases(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(leases).To(HaveLen(n))
		for _, lease := range leases {
			id, err := strconv.Atoi(lease.Labels[receipt.IDLabel])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(lease.Spec.HolderIdentity).To(HaveValue(HavePrefix(slots[id] + "/")))
		}
	}).WithContext(ctx).Should(Succeed())
	return slots
}

var _ = Describe("strict mode under the policy", func() {
	It("holds, gives and takes Leases, which outlive their workload", func(ctx SpecContext) {
		w := newWorkload(ctx, kinds.Deployment, "--fence-after=3s")
		Expect(w.Scale(ctx, kinds.Deployment, "worker", 2)).To(Succeed())
		before := w.held(ctx, 2)

		By("a pod that ends: its successor need not wait")
		Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, before[0], metav1.DeleteOptions{})).To(Succeed())
		w.replaced(ctx, before, 0)

		By("a pod that vanishes: its successor takes the Lease when its time is over")
		before = w.held(ctx, 2)
		Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, before[1], metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})).To(Succeed())
		w.replaced(ctx, before, 1)

		By("no workload any more: the Leases stay until a person deletes them, because work under them may not have stopped")
		foreground := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}
		Expect(env.Client.AppsV1().Deployments(w.Name).Delete(ctx, "worker", foreground)).To(Succeed())
		Eventually(func() error {
			_, err := env.Client.AppsV1().Deployments(w.Name).Get(ctx, "worker", metav1.GetOptions{})
			return err
		}).WithContext(ctx).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
		Expect(w.leases(ctx)).To(HaveLen(2))
		Expect(env.Client.CoordinationV1().Leases(w.Name).DeleteCollection(ctx, metav1.DeleteOptions{}, w.labelled())).To(Succeed())
		Expect(w.leases(ctx)).To(BeEmpty())
	})
})

// replaced waits until another pod than before holds this slot.
func (w *workload) replaced(ctx context.Context, before assignment.Slots, id int) {
	GinkgoHelper()
	Eventually(func() string { return w.held(ctx, len(before))[id] }).WithContext(ctx).ShouldNot(Equal(before[id]))
}
