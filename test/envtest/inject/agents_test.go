package inject

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// byAgents is a workload whose pods have the sidecar, for which the controller plans.
var byAgents = with(`idalloc.dev/inject: "true"`, `idalloc.dev/inject: "true", idalloc.dev/assign: agent`) //nolint:gochecknoglobals // a text

// linked is one whose program runs idalloc itself.
func linked(oldnew ...string) string {
	return strings.NewReplacer(oldnew...).Replace(with(`idalloc.dev/inject: "true"`, "idalloc.dev/assign: agent"))
}

var _ = Describe("the policies, of pods for which the controller plans,", Ordered, ContinueOnFailure, func() {
	var namespace string
	BeforeAll(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		Eventually(func(g Gomega) {
			_, err := create(ctx, namespace, templateOf(assignedWith("assign: controller", "assign: perhaps")))
			g.Expect(err).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy 'idalloc-assign")))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(patience))

	It("give such a pod the sidecar and no gate, as kubectl idalloc inject does", func(ctx SpecContext) {
		byPolicy, err := create(ctx, namespace, templateOf(byAgents))
		Expect(err).NotTo(HaveOccurred())
		for _, workload := range []string{byAgents, plain} {
			result, workloads, err := inject.Stream(workload, inject.Options{By: inject.ByAgent})
			Expect(err).NotTo(HaveOccurred())
			Expect(workloads).To(HaveLen(1))
			byCommand, err := create(ctx, namespace, templateOf(result))
			Expect(err).NotTo(HaveOccurred())
			Expect(normal(byPolicy)).To(BeComparableTo(normal(byCommand)))
		}
		Expect(names(byPolicy.Spec.InitContainers)).To(Equal([]string{sidecarName}))
		Expect(byPolicy.Spec.SchedulingGates).To(BeEmpty())
	})

	DescribeTable("permit what a pod behind the gate may not have", func(ctx SpecContext, workload string) {
		pod, err := create(ctx, namespace, templateOf(workload))
		Expect(err).NotTo(HaveOccurred())
		Expect(pod.Spec.SchedulingGates).To(BeEmpty())
	},
		Entry("a program that runs idalloc", linked("image: example.com/program", "image: example.com/program, command: [/bin/idalloc, run, --, x]")),
		Entry("a node by name", linked("spec:\n      containers", "spec:\n      nodeName: node1\n      containers")),
		Entry("a variable of its own", linked("image: example.com/program", "image: example.com/program, env: [{name: IDALLOC_ID, value: x}]")),
		Entry("a volume of its own", linked(oneContainer, "containers:\n        - {name: main, image: example.com/program, volumeMounts: [{name: idalloc, mountPath: /var/run/idalloc}]}\n      volumes: [{name: idalloc, emptyDir: {}}]")),
		Entry("no grace period, which is for strict mode", linked("spec:\n      containers", "spec:\n      terminationGracePeriodSeconds: 0\n      containers")),
	)

	It("refuse a gate that nothing would remove, and no grace period beside the sidecar", func(ctx SpecContext) {
		for workload, sentence := range map[string]string{
			strings.Replace(byAgents, "spec:\n      containers", "spec:\n      schedulingGates: [{name: idalloc.dev/id}]\n      containers", 1): "the scheduling gate idalloc.dev/id, which nothing would remove",
			strings.Replace(byAgents, "spec:\n      containers", "spec:\n      terminationGracePeriodSeconds: 0\n      containers", 1):          "terminationGracePeriodSeconds is 0",
			strings.Replace(byAgents, "assign: agent", "assign: agents", 1):                                                                     `label idalloc.dev/assign is "agents": use "controller" or "agent"`,
		} {
			_, err := create(ctx, namespace, templateOf(workload))
			Expect(err).To(MatchError(And(ContainSubstring("ValidatingAdmissionPolicy 'idalloc-"), ContainSubstring(sentence))))
			_, _, err = inject.Stream(workload, inject.Options{})
			Expect(err).To(MatchError(ContainSubstring(sentence)))
		}
	})

	It("refuse a template with a proposal, of whatever pod that has the label, and a pod without a workload", func(ctx SpecContext) {
		for _, workload := range []string{byAgents, assigned} {
			template := templateOf(workload)
			template.Annotations = map[string]string{receipt.ProposalKey: "{}"}
			_, err := create(ctx, namespace, template)
			Expect(err).To(MatchError(ContainSubstring("only idalloc-controller writes idalloc.dev/proposal")))
		}
		_, err := create(ctx, namespace, templateOf(linked()), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: aUID})
		Expect(err).To(MatchError(ContainSubstring("a pod by itself has nothing to number it by")))
	})

	It("let the controller alone write proposals, and nothing else, and let no account change which program plans", func(ctx SpecContext) {
		pod := stored(ctx, namespace, linked())
		patch := func(c kubernetes.Interface, name, text string, subresources ...string) error {
			_, err := c.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{
				DryRun: []string{metav1.DryRunAll}, FieldManager: assignment.FieldManager,
			}, subresources...)
			return err
		}
		annotation := func(key string) string { return fmt.Sprintf(`{"metadata":{"annotations":{%q:"{}"}}}`, key) }
		label := func(key, value string) string { return fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, value) }
		controller, _ := asController()

		Expect(patch(controller, pod.Name, annotation(receipt.ProposalKey))).To(Succeed())
		for _, text := range []string{annotation(receipt.Key), annotation("idalloc.dev/id"), label(receipt.OwnerLabel, `"x"`), label(receipt.IDLabel, `"1"`), label(receipt.AssignLabel, "null")} {
			Expect(patch(controller, pod.Name, text)).To(MatchError(ContainSubstring("idalloc-controller may only change keys of idalloc, and not idalloc.dev/")), text)
		}
		for _, text := range []string{annotation(receipt.ProposalKey), label(receipt.AssignLabel, "null"), label(receipt.AssignLabel, `"controller"`)} {
			Expect(patch(client, pod.Name, text)).To(MatchError(ContainSubstring("only idalloc-controller changes idalloc.dev/")), text)
			Expect(patch(client, pod.Name, text, "status")).To(MatchError(ContainSubstring("only idalloc-controller changes idalloc.dev/")), text)
		}
		for _, text := range []string{annotation(receipt.Key), label(receipt.OwnerLabel, `"x"`)} {
			Expect(patch(client, pod.Name, text)).To(Succeed(), "the pod's own account writes %s", text)
		}

		By("a pod that plans by itself cannot become an agent")
		peer := pod.DeepCopy()
		peer.ObjectMeta = metav1.ObjectMeta{Name: "peer"}
		peer.Spec.NodeName = ""
		_, err := client.CoreV1().Pods(namespace).Create(ctx, peer, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(patch(client, "peer", label(receipt.AssignLabel, `"agent"`))).To(MatchError(ContainSubstring("only idalloc-controller changes idalloc.dev/assign")))
		Expect(patch(controller, "peer", annotation(receipt.ProposalKey))).To(MatchError(ContainSubstring("has no label idalloc.dev/assign")))
	})
})
