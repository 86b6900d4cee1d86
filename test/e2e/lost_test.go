//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/internal/inspect"
)

const (
	// lostPartitions is how many the workloads of the spec divide.
	lostPartitions = 64
	// lostPatience is for what docs/operations.md adds up to seven minutes with the defaults, and with the times of onBothNodes to a minute and a half.
	lostPatience = 4 * time.Minute
	// lostGrace is the grace period of the pods.
	lostGrace = 2
)

var _ = Describe("A lost node", Serial, func() {
	It("leaves ids and partitions to other pods in strict mode, and keeps them by default, although no person deletes anything", Label(mainFlow), func(ctx SpecContext) {
		c := breakable()
		node := c.secondNode(ctx)
		strict, byDefault := prepare(ctx, partitions, 4, onBothNodes, strictly), prepare(ctx, partitions, 2, onBothNodes)
		for _, w := range []*workload{strict, byDefault} {
			w.divide(lostPartitions)
			w.apply(ctx)
		}
		strict.divided(ctx, 4)
		byDefault.divided(ctx, 2)
		row := byDefault.row(ctx)
		lost, kept := strict.podsOn(ctx, node), byDefault.podsOn(ctx, node)
		Expect(lost).To(HaveLen(2))
		Expect(kept).To(HaveLen(1))

		By("losing " + node + ": its kubelet is suspended, and its pods are cut off")
		mends := []func(){strict.cutOff(ctx, lost[0]), strict.cutOff(ctx, lost[1]), byDefault.cutOff(ctx, kept[0])}
		resume := c.stopSecondKubelet()

		Eventually(func(g Gomega) {
			h := strict.assignment(ctx, g)
			g.Expect(h).To(HaveLen(4))
			g.Expect(h).NotTo(ContainElement(BeElementOf(lost)))
		}).WithContext(ctx).WithTimeout(lostPatience).Should(Succeed())
		strict.divided(ctx, 4)
		Expect(strict.findings(ctx)).To(BeEmpty())
		for _, pod := range lost {
			Expect(strict.terminating(ctx, pod)).To(BeTrue(), "the object of %s stays", pod)
		}
		Expect(strict.kubectl(ctx, "get", "leases", "-l", "idalloc.dev/owner=deployment."+name)).NotTo(Or(ContainSubstring(lost[0]), ContainSubstring(lost[1])))

		By("seeing that the other workload waits, and says for whom and what to do")
		says := And(ContainSubstring(kept[0]), ContainSubstring("its node may be down"), ContainSubstring("node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"))
		var replacement string
		Eventually(func(g Gomega, ctx context.Context) {
			pods, held := byDefault.others(ctx, g, byDefault.assignment(ctx, g))
			g.Expect(pods).To(HaveLen(1))
			g.Expect(held).To(BeEmpty())
			replacement = pods[0].Name
			// The Event has the reason of the first half minute, and another one only a minute later. The log has each.
			g.Expect(byDefault.kubectl(ctx, "describe", "pod", replacement)).To(ContainSubstring("WaitingForSlot"))
			g.Expect(byDefault.kubectl(ctx, "logs", replacement)).To(says)
		}).WithContext(ctx).Should(Succeed())
		Expect(byDefault.findings(ctx)).To(ContainElement(And(HaveField("Kind", "lost"), HaveField("Pod", kept[0]),
			HaveField("Detail", And(ContainSubstring("node "+node), ContainSubstring("nodeshutdown:NoExecute"))))))
		Expect(byDefault.row(ctx)).To(Equal(row))
		byDefault.divided(ctx, 2) // the lost pod works on
		Expect(byDefault.assignment(ctx, NewGomega(Fail))).To(ContainElement(kept[0]))

		By("bringing the node back: the old pods end, and the replacement gets what it waits for")
		for _, mend := range mends {
			mend()
		}
		resume()
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(strict.podsOn(ctx, node)).NotTo(ContainElement(BeElementOf(lost)))
			g.Expect(byDefault.assignment(ctx, g)).To(ContainElement(replacement))
		}).WithContext(ctx).Should(Succeed())
		strict.divided(ctx, 4)
		byDefault.divided(ctx, 2)
		Expect(byDefault.row(ctx)).To(Equal(row))
	}, SpecTimeout(lostPatience+3*patience))
})

// onBothNodes puts as many pods on the one node as on the other, while both are there. A lost pod is soon deleted.
func onBothNodes(s *appsv1.DeploymentSpec) {
	pod := &s.Template.Spec
	pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: s.Selector,
		NodeTaintsPolicy: new(corev1.NodeInclusionPolicyHonor),
	}}
	pod.TerminationGracePeriodSeconds = new(int64(lostGrace))
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		pod.Tolerations = append(pod.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(1)),
		})
	}
}

// podsOn returns the pods on a node.
func (w *workload) podsOn(ctx context.Context, node string) []string {
	GinkgoHelper()
	pods, err := w.pods(ctx)
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, p := range pods {
		if p.Spec.NodeName == node {
			names = append(names, p.Name)
		}
	}
	return names
}

func (w *workload) terminating(ctx context.Context, pod string) bool {
	GinkgoHelper()
	p, err := client.CoreV1().Pods(w.namespace).Get(ctx, pod, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return p.DeletionTimestamp != nil
}

// findings returns those of idalloc verify.
func (w *workload) findings(ctx context.Context) []inspect.Finding {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, os.Getenv("E2E_IDALLOC"), "verify", "deployment/"+name, "-n", w.namespace, "-o", "json") //nolint:gosec // what hack/e2e built
	out, err := cmd.Output()
	var report inspect.Report
	Expect(json.Unmarshal(out, &report)).To(Succeed(), "idalloc verify: %v: %s", err, out)
	return report.Findings
}
