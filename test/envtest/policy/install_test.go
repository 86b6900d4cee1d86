package policy

import (
	"context"
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/check"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var _ = Describe("the policies", func() {
	DescribeTable("have no expression that the API server warns of", func(ctx SpecContext, name string) {
		Eventually(func(g Gomega) {
			policy, err := env.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(policy.Status.ObservedGeneration).To(Equal(policy.Generation), "the types are checked")
			g.Expect(policy.Status.TypeChecking).To(HaveField("ExpressionWarnings", BeEmpty()))
		}).WithContext(ctx).Should(Succeed())
	},
		Entry("that of workloads and pods", "idalloc", SpecTimeout(patience)),
		Entry("that of Leases", "idalloc-leases", SpecTimeout(patience)),
		Entry("that of Events", "idalloc-events", SpecTimeout(patience)),
	)

	It("are seen to limit a pod, and not to if a binding is narrowed", Serial, func(ctx SpecContext) {
		s := newScene(ctx)
		admin, err := store.New(env.ControlPlane.Config(), clock.RealClock{})
		Expect(err).NotTo(HaveOccurred())
		pod, err := admin.GetFullPod(ctx, s.ns.Name, s.own.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(check.PolicyMissing(ctx, admin)).To(BeEmpty())
		Expect(check.PolicyPasses(ctx, admin, pod)).To(BeEmpty())

		bindings := env.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		narrow := func(ctx context.Context, selector string) {
			patch := fmt.Sprintf(`{"spec":{"matchResources":{"namespaceSelector":%s}}}`, selector)
			_, err := bindings.Patch(ctx, "idalloc", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		DeferCleanup(func(ctx SpecContext) {
			narrow(ctx, `{"matchLabels":null}`)
			s.marked.limited(ctx, pods, s.own.Name)
		}, NodeTimeout(patience))
		narrow(ctx, `{"matchLabels":{"example.com/limited":"yes"}}`)
		Expect(check.PolicyMissing(ctx, admin)).To(ContainSubstring("validatingadmissionpolicybindings/idalloc leaves something out"))
		Eventually(func() string { return check.PolicyPasses(ctx, admin, pod) }).WithContext(ctx).Should(ContainSubstring("do not limit service account " + suite.Account))
	})

	It("can be seen by each account, so that a user knows when they are missing", func(ctx SpecContext) {
		ns, err := env.NewNamespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(ns.Delete)
		config, err := ns.Config(ctx)
		Expect(err).NotTo(HaveOccurred())
		s, err := store.New(config, clock.RealClock{})
		Expect(err).NotTo(HaveOccurred())
		Expect(check.PolicyMissing(ctx, s)).To(ContainSubstring("you may not get validatingadmissionpolicies/idalloc, so it cannot be told here"))
		root, err := controlplane.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "apply", "-f", filepath.Join(root, "config", "policy", "see.yaml"))
		Eventually(func() string { return check.PolicyMissing(ctx, s) }).WithContext(ctx).Should(BeEmpty())
	})
})
