//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/internal/inspect"
)

// controllerCases are specs of what happens to workloads whose pods the controller counts.
func controllerCases() {
	It("gives ids to the pods of a Job, and lets each failed one count against its backoffLimit", func(ctx SpecContext) {
		w := newWorkload(ctx, files)
		good := w.job(ctx, "good", []string{program, "variable", "IDALLOC_ID"})
		Expect(good).To(HaveField("Status.Succeeded", BeEquivalentTo(2)))
		pods := w.podsOfJob(ctx, "good")
		ids := make([]string, 0, len(pods))
		for _, pod := range pods {
			out, err := w.kubectl(ctx, "logs", pod.Name)
			Expect(err).NotTo(HaveOccurred())
			ids = append(ids, strings.TrimSpace(out))
		}
		Expect(ids).To(ConsistOf("0", "1"))

		bad := w.job(ctx, "bad", []string{program, "no-such-mode"})
		Expect(bad.Status.Conditions).To(ContainElement(And(HaveField("Type", batchv1.JobFailed), HaveField("Reason", batchv1.JobReasonBackoffLimitExceeded))))
		for _, pod := range w.podsOfJob(ctx, "bad") {
			Expect(pod.Annotations[idKey]).To(BeElementOf("0", "1", ""), "a pod that the Job removed may have waited")
		}
	}, SpecTimeout(2*patience))

	It("finishes a rolling update under a full quota", func(ctx SpecContext) {
		w := prepare(ctx, files, 3, assigned, byDefault)
		_, err := client.CoreV1().ResourceQuotas(w.namespace).Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("4")}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		w.apply(ctx)
		w.held(ctx, 3)
		w.restart(ctx)
		w.held(ctx, 3)
	}, SpecTimeout(3*patience))

	It("updates all pods although a policy refuses what is written on one of them, and says which policy", func(ctx SpecContext) {
		w := prepare(ctx, files, 3, assigned, byDefault)
		w.apply(ctx)
		pod := w.held(ctx, 3)[1]
		w.refuse(ctx, "pods", pod)
		w.scale(ctx, "4")
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(w.assignment(ctx, g)).To(HaveLen(4))
			g.Expect(w.kubectl(ctx, "get", "events", "--field-selector=reason=WriteRefused,involvedObject.name="+pod)).To(ContainSubstring(another))
			code, says := w.verdict(ctx, "deployment/"+name)
			g.Expect(code).NotTo(BeZero())
			g.Expect(says).To(And(ContainSubstring(pod), ContainSubstring(another)))
			g.Expect(w.explained(ctx, pod)).To(ContainSubstring(another))
		}).WithContext(ctx).Should(Succeed())
		w.restart(ctx)
		Expect(w.held(ctx, 4)).NotTo(ContainElement(pod))
	}, SpecTimeout(3*patience))

	It("says which budget holds up a rolling update, before and while it does", func(ctx SpecContext) {
		const budget = "tight"
		w := prepare(ctx, files, 2, assigned, rolling("1", "0"))
		w.apply(ctx)
		before := w.held(ctx, 2)
		labels := metav1.FormatLabelSelector(w.manifest.deployment.Spec.Selector)
		Expect(w.kubectl(ctx, "create", "poddisruptionbudget", budget, "--selector="+labels, "--min-available=2")).Error().NotTo(HaveOccurred())
		Eventually(func(g Gomega, ctx context.Context) {
			code, says := w.verdict(ctx, "deployment/"+name)
			g.Expect(code).To(BeZero())
			g.Expect(says).To(ContainSubstring("PodDisruptionBudget " + budget + " wants 2 of 2 pods available"))
		}).WithContext(ctx).Should(Succeed())

		w.restart(ctx)
		Eventually(func(g Gomega, ctx context.Context) {
			code, says := w.verdict(ctx, "deployment/"+name)
			g.Expect(code).NotTo(BeZero())
			g.Expect(says).To(ContainSubstring("PodDisruptionBudget " + budget))
			pods, held := w.others(ctx, g, before)
			g.Expect(held).To(BeEmpty())
			g.Expect(pods).To(HaveLen(1))
			g.Expect(w.explained(ctx, pods[0].Name)).To(ContainSubstring("disruption budget"))
		}).WithContext(ctx).WithTimeout(2 * patience).Should(Succeed())

		Expect(w.kubectl(ctx, "delete", "poddisruptionbudget", budget)).Error().NotTo(HaveOccurred())
		w.held(ctx, 2)
	}, SpecTimeout(5*patience))

	DescribeTable("moves from the sidecar to the controller and back while pods are deleted, and no id is used twice", func(ctx SpecContext, e example, strategy change) {
		w := prepare(ctx, e, 3, strategy)
		w.apply(ctx)
		w.held(ctx, 3)
		own := w.manifest.deployment.Spec.DeepCopy()
		assigned(&w.manifest.deployment.Spec)
		w.apply(ctx)
		w.deleteSome(ctx, 4)
		w.held(ctx, 3)
		w.expectEnvironment(ctx)
		w.manifest.deployment.Spec = *own
		w.apply(ctx)
		w.deleteSome(ctx, 4)
		w.held(ctx, 3)
		w.verify(ctx)
	},
		Entry("without a drain hook", files, rolling("0", "1"), SpecTimeout(3*patience)),
		Entry("with a drain hook and the default strategy", drain, byDefault, SpecTimeout(3*patience)),
	)

	It("keeps the id of a pod on a lost node for it, says so, and passes it on once the node is out of service", func(ctx SpecContext) {
		c := breakable()
		node := c.secondNode(ctx)
		w := prepare(ctx, files, 2, assigned, onBothNodes)
		w.apply(ctx)
		before := w.held(ctx, 2)
		lost := w.podsOn(ctx, node)
		Expect(lost).To(HaveLen(1))
		id := before.id(lost[0])

		By("losing " + node + ": its kubelet is suspended")
		resume := c.stopSecondKubelet()
		var waits string
		Eventually(func(g Gomega, ctx context.Context) {
			pods, held := w.others(ctx, g, before)
			g.Expect(pods).To(HaveLen(1))
			g.Expect(held).To(BeEmpty())
			g.Expect(pods[0].Spec.SchedulingGates).NotTo(BeEmpty())
			g.Expect(w.terminating(ctx, lost[0])).To(BeTrue())
			waits = pods[0].Name
		}).WithContext(ctx).WithTimeout(lostPatience).Should(Succeed())
		Eventually(func(ctx context.Context) []inspect.Finding { return w.findings(ctx) }).WithContext(ctx).Should(ContainElement(And(
			HaveField("Kind", "lost"), HaveField("Pod", lost[0]))))
		Expect(w.assignment(ctx, NewGomega(Fail))).To(HaveKeyWithValue(id, lost[0]))

		By("ending its programs, and tainting it as out of service")
		running, err := processes(lost[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(running).NotTo(BeEmpty())
		for _, pid := range running {
			Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Or(Succeed(), MatchError(syscall.ESRCH))) // the end of one may be that of the next
		}
		const taint = corev1.TaintNodeOutOfService
		Expect(w.kubectl(ctx, "taint", "node", node, taint+"=nodeshutdown:NoExecute")).Error().NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(w.kubectl(ctx, "taint", "node", node, taint+"-")).Error().NotTo(HaveOccurred())
		}, NodeTimeout(patience))
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(w.assignment(ctx, g)).To(HaveKeyWithValue(id, waits))
		}).WithContext(ctx).Should(Succeed())
		w.held(ctx, 2)
		Expect(w.findings(ctx)).To(BeEmpty())

		By("bringing the node back")
		resume()
		w.held(ctx, 2)
		Expect(w.assignment(ctx, NewGomega(Fail))).To(HaveKeyWithValue(id, waits))
	}, SpecTimeout(lostPatience+2*patience))
}

// lostUpdates are specs of Deployments that go on although part of them is lost.
func lostUpdates() {
	It("keeps every running pod of a Deployment that is deleted in mid-rollout without its ReplicaSets, and updates it when it is back", func(ctx SpecContext) {
		w := prepare(ctx, files, 3, assigned, byDefault)
		w.apply(ctx)
		before := w.held(ctx, 3)
		By("stopping in mid-rollout: the revision never becomes Ready")
		w.revise(ctx, `{"name":"`+name+`","readinessProbe":{"exec":{"command":["`+program+`","no-such-mode"]}}}`)
		identities := func(g Gomega, ctx context.Context) map[string]string {
			pods, err := w.pods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			all := map[string]string{}
			for _, p := range pods {
				if text := p.Annotations["idalloc.dev/identity"]; text != "" && p.DeletionTimestamp == nil {
					all[p.Name] = text
				}
			}
			return all
		}
		var running map[string]string
		Eventually(func(g Gomega, ctx context.Context) {
			running = identities(g, ctx)
			g.Expect(running).To(HaveLen(3))
			g.Expect(running).NotTo(HaveKey(before[2]))
			pods, err := w.pods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(4))
		}).WithContext(ctx).Should(Succeed())

		w.orphan(ctx, name)
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(w.kubectl(ctx, "get", "events")).To(ContainSubstring("WorkloadFrozen"))
			g.Expect(identities(g, ctx)).To(Equal(running))
		}).WithContext(ctx).Should(Succeed())

		By("applying the manifest again")
		w.apply(ctx)
		w.held(ctx, 3)
		w.expectEnvironment(ctx)
	}, SpecTimeout(3*patience))

	It("updates all pods but those of a lost node, whatever the strategy", func(ctx SpecContext) {
		c := breakable()
		node := c.secondNode(ctx)
		const n = 4
		all := []*workload{prepare(ctx, files, n, assigned, onBothNodes, rolling("1", "0")), prepare(ctx, files, n, assigned, onBothNodes, rolling("25%", "25%"))}
		lost := make([][]string, len(all))
		for i, w := range all {
			w.apply(ctx)
			w.held(ctx, n)
			lost[i] = w.podsOn(ctx, node)
			Expect(lost[i]).To(HaveLen(n / 2))
		}

		By("losing " + node + ": its kubelet is suspended")
		resume := c.stopSecondKubelet()
		for i, w := range all {
			Eventually(func(g Gomega, ctx context.Context) {
				for _, pod := range lost[i] {
					g.Expect(w.terminating(ctx, pod)).To(BeTrue())
				}
			}).WithContext(ctx).WithTimeout(lostPatience).Should(Succeed())
			w.restart(ctx)
		}
		for i, w := range all {
			Eventually(func(g Gomega, ctx context.Context) {
				pods, err := w.pods(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				updated := 0
				for _, p := range pods {
					if p.Annotations[idKey] != "" && !slices.Contains(lost[i], p.Name) {
						g.Expect(p.DeletionTimestamp).To(BeNil())
						g.Expect(p.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"), p.Name)
						updated++
					}
				}
				g.Expect(updated).To(Equal(n / 2))
			}).WithContext(ctx).WithTimeout(lostPatience).Should(Succeed())
		}

		By("bringing the node back")
		resume()
		for _, w := range all {
			w.held(ctx, n)
		}
	}, SpecTimeout(2*lostPatience+3*patience))
}

// another is the policy of another tool.
const another = "another-tool"

// refuse installs a policy of another tool that refuses updates of pods or Leases of the namespace, by name if one is given, until the spec ends or
// permit is called.
func (w *workload) refuse(ctx context.Context, resource, only string) (permit func(ctx context.Context)) {
	GinkgoHelper()
	condition := "request.namespace == '" + w.namespace + "'"
	if only != "" {
		condition += " && request.name == '" + only + "'"
	}
	meta := metav1.ObjectMeta{Name: another}
	_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"", "coordination.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "these", Expression: condition}},
			Validations:     []admissionv1.Validation{{Expression: "false", Message: "not with this tool"}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: another, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	permit = func(ctx context.Context) {
		Expect(w.kubectl(ctx, "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", another, "--ignore-not-found")).Error().NotTo(HaveOccurred())
	}
	DeferCleanup(func(ctx SpecContext) { permit(ctx) }, NodeTimeout(patience)) //nolint:contextcheck // a cleanup has a context of its own
	Eventually(func(ctx context.Context) error {
		_, err := w.kubectl(ctx, "label", resource, "--all", "example.com/probe=yes", "--dry-run=server")
		return err
	}).WithContext(ctx).Should(MatchError(ContainSubstring(another)))
	return permit
}

// byDefault leaves the strategy to Kubernetes.
func byDefault(s *appsv1.DeploymentSpec) { s.Strategy = appsv1.DeploymentStrategy{} }

// deleteSome deletes a pod each time that another number of pods is Ready, while the update makes progress.
func (w *workload) deleteSome(ctx context.Context, n int) {
	GinkgoHelper()
	deleted := map[string]bool{}
	for range n {
		Eventually(func(g Gomega, ctx context.Context) {
			pods, err := w.pods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return deleted[p.Name] || p.DeletionTimestamp != nil })
			g.Expect(pods).NotTo(BeEmpty())
			g.Expect(w.kubectl(ctx, "delete", "pod", pods[0].Name, "--wait=false")).Error().NotTo(HaveOccurred())
			deleted[pods[0].Name] = true
		}).WithContext(ctx).Should(Succeed())
	}
}

// job runs a Job with two pods to its end.
func (w *workload) job(ctx context.Context, of string, command []string) *batchv1.Job {
	GinkgoHelper()
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{assignLabel: "controller"}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: name, Image: image, ImagePullPolicy: corev1.PullNever, Command: command}},
		},
	}
	_, err := client.BatchV1().Jobs(w.namespace).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: of}, Spec: batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(2)), BackoffLimit: new(int32(1)), Template: t,
	}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	var job *batchv1.Job
	Eventually(func(g Gomega, ctx context.Context) {
		job, err = client.BatchV1().Jobs(w.namespace).Get(ctx, of, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(job.Status.Conditions).To(ContainElement(HaveField("Type", BeElementOf(batchv1.JobComplete, batchv1.JobFailed))))
	}).WithContext(ctx).Should(Succeed())
	return job
}

func (w *workload) podsOfJob(ctx context.Context, of string) []corev1.Pod {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + of})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}
