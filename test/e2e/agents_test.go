//go:build e2e

package e2e

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/overlap"
)

// agentPartitions is a number that three and four pods divide without a rest.
const agentPartitions = 12

// movingPartitions is what the workload has whose pods come and go.
const movingPartitions = 24

var _ = Describe("A Deployment for whose sidecars the controller plans", Serial, Ordered, func() {
	BeforeAll(func(ctx SpecContext) { controllerByManifests(ctx) }, NodeTimeout(patience))

	It("divides its partitions without a right on the workload, and keeps what it has while the controller is away", func(ctx SpecContext) {
		w := prepare(ctx, files, 3, bare, rolling("1", "0"), sharesByAgents)
		w.divide(agentPartitions)
		w.becomeAgents(ctx)
		w.applyAgents(ctx)
		w.divided(ctx, 3)
		before := w.held(ctx, 3)
		w.expectNoRights(ctx)

		By("more pods, and fewer")
		w.scale(ctx, "5")
		w.divided(ctx, 5)
		expectKept(before, w.held(ctx, 5))
		w.scale(ctx, "3")
		w.divided(ctx, 3)
		before = w.held(ctx, 3)

		By("the controller is away: a process that is started again keeps its lock, and a new pod waits")
		scaleController(ctx, "0")
		lock := w.receiptOf(ctx, before[1])
		restarts := w.restarts(ctx, before[1], idalloc)
		running, err := processes(before[1])
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Kill(running[idalloc], syscall.SIGKILL)).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(w.restarts(ctx, before[1], idalloc)).To(Equal(restarts + 1))
			g.Expect(w.receiptOf(ctx, before[1])).NotTo(Equal(lock), "the new process has not written its lock")
		}).WithContext(ctx).Should(Succeed())
		Expect(w.held(ctx, 3)).To(Equal(before))
		w.divided(ctx, 3)
		w.scale(ctx, "4")
		Eventually(func(g Gomega, ctx context.Context) {
			pods, err := w.pods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			fresh := slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.Annotations[receipt.Key] != "" })
			g.Expect(fresh).To(HaveLen(1))
			g.Expect(w.explained(ctx, fresh[0].Name)).To(ContainSubstring("idalloc-controller has proposed nothing"))
		}).WithContext(ctx).Should(Succeed())
		w.divided(ctx, 3)

		By("it is back")
		scaleController(ctx, "2")
		w.divided(ctx, 4)
		expectKept(before, w.held(ctx, 4))
		w.restart(ctx)
		w.held(ctx, 4)
		w.divided(ctx, 4)
		w.verify(ctx)
	}, SpecTimeout(4*patience))

	It("leaves them at work under the same tokens when it is deleted without its pods, when it is back, and under another name", func(ctx SpecContext) {
		w := prepare(ctx, files, 3, bare, rolling("1", "0"), sharesByAgents)
		w.divide(agentPartitions)
		w.becomeAgents(ctx)
		var before map[int]overlap.Record
		w.moves(ctx, func(deployment string) {
			w.manifest.deployment.Name = deployment
			w.applyAgents(ctx)
		}, func(_, _ string) { w.expectNoRights(ctx) }, func(owner string) {
			w.allWorkFor(ctx, owner, 3)
			work := w.divided(ctx, 3)
			kept := 0
			for number, was := range before {
				if is := work[number]; is.Pod == was.Pod {
					Expect(is.Token).To(Equal(was.Token), "the token of partition %d for %s", number, owner)
					kept++
				}
			}
			if before != nil {
				Expect(kept).To(BeElementOf(2*agentPartitions/3, agentPartitions), "partitions that no pod stopped to work on for %s", owner)
			}
			before = work
		})
	}, SpecTimeout(4*patience))

	It("leaves ids and partitions in strict mode to others only when the pods on a lost node have stopped, be they cut off or suspended", func(ctx SpecContext) {
		c := breakable()
		node := c.secondNode(ctx)
		w := prepare(ctx, partitions, 4, onBothNodes, strictly, labelled)
		w.divide(agentPartitions)
		w.becomeAgents(ctx)
		w.grantLeases()
		w.manifest.role.Rules = append(w.manifest.role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{"idalloc.dev"}, Resources: []string{"slots"}, ResourceNames: []string{"deployment." + name}, Verbs: []string{"lock"},
		})
		w.apply(ctx)
		before := w.divided(ctx, 4)
		w.expectNoRights(ctx)
		lost := w.podsOn(ctx, node)
		Expect(lost).To(HaveLen(2))

		By("losing " + node + ": its kubelet is suspended, and so is the program of one pod; the other pod is cut off")
		mend := w.cutOff(ctx, lost[0])
		resumeProgram := suspend(lost[1], filepath.Base(program))
		resume := c.stopSecondKubelet()
		Eventually(func(g Gomega) {
			h := w.assignment(ctx, g)
			g.Expect(h).To(HaveLen(4))
			g.Expect(h).NotTo(ContainElement(BeElementOf(lost)))
		}).WithContext(ctx).WithTimeout(lostPatience).Should(Succeed())
		after := w.divided(ctx, 4)
		for number, now := range after {
			if was := before[number]; slices.Contains(lost, was.Pod) {
				Expect(now.Token).To(BeNumerically(">", was.Token), "the token of partition %d", number)
			}
		}
		for _, pod := range lost {
			Expect(w.terminating(ctx, pod)).To(BeTrue(), "the object of %s stays", pod)
		}

		By("letting the suspended program continue, and bringing the network and the node back")
		resumeProgram()
		w.divided(ctx, 4)
		mend()
		resume()
		Eventually(func(ctx context.Context) []string { return w.podsOn(ctx, node) }).WithContext(ctx).ShouldNot(ContainElement(BeElementOf(lost)))
		w.divided(ctx, 4)
	}, SpecTimeout(lostPatience+3*patience))

	It("takes the partitions over from pods that plan for themselves, and gives them back, while pods are deleted", func(ctx SpecContext) {
		w := prepare(ctx, sidecar, 3, rolling("1", "0"), sharing)
		w.divide(agentPartitions)
		w.apply(ctx)
		w.divided(ctx, 3)
		for _, change := range []change{labelled, func(s *appsv1.DeploymentSpec) { delete(s.Template.Labels, assignLabel) }} {
			change(&w.manifest.deployment.Spec)
			w.apply(ctx)
			w.deleteSome(ctx, 4)
			w.held(ctx, 3)
			w.divided(ctx, 3)
		}
		w.verify(ctx)
	}, SpecTimeout(4*patience))

	It("moves partitions beside pods that plan for themselves, and reports how long they rest", func(ctx SpecContext) {
		for planner, changes := range map[string][]change{"pods": nil, "the controller": {labelled}} {
			w := prepare(ctx, partitions, 3, changes...)
			w.divide(movingPartitions)
			if len(changes) > 0 {
				w.becomeAgents(ctx)
			}
			w.apply(ctx)
			w.divided(ctx, 3)
			var rests []time.Duration
			for _, pods := range []int{5, 2, 4} {
				since := overlap.Now()
				w.scale(ctx, strconv.Itoa(pods))
				w.divided(ctx, pods)
				report, err := overlap.Check(w.records(since))
				Expect(err).NotTo(HaveOccurred())
				for _, s := range report.Slots {
					if len(s.Holders) > 1 {
						rests = append(rests, s.MaxGap)
					}
				}
			}
			Expect(rests).NotTo(BeEmpty())
			slices.Sort(rests)
			reportf("moved partitions", "planned by %s: %d rested for %s (median), %s (longest)", planner, len(rests), rests[len(rests)/2], rests[len(rests)-1])
		}
	}, SpecTimeout(4*patience))
})

// labelled has the controller plan for the pods.
func labelled(s *appsv1.DeploymentSpec) { s.Template.Labels[assignLabel] = receipt.ByAgent }

// suspend stops the process of a pod's program until the spec ends or resume is called.
func suspend(pod, of string) (resume func()) {
	GinkgoHelper()
	running, err := processes(pod)
	Expect(err).NotTo(HaveOccurred())
	Expect(running).To(HaveKey(of))
	Expect(syscall.Kill(running[of], syscall.SIGSTOP)).To(Succeed())
	resume = func() { _ = syscall.Kill(running[of], syscall.SIGCONT) } // it may have ended by then
	DeferCleanup(resume)
	return resume
}

// sharesByAgents has the program work on the partitions that the files name. Its template asks for a sidecar that is told of partitions.
func sharesByAgents(s *appsv1.DeploymentSpec) {
	metav1.SetMetaDataAnnotation(&s.Template.ObjectMeta, "inject.idalloc.dev/partitions", "true")
	s.Template.Spec.Containers[0].Command = []string{program, "share"}
}

// becomeAgents gives the workload the account of config/agent.
func (w *workload) becomeAgents(ctx context.Context) {
	GinkgoHelper()
	agents, err := render(ctx, "agent")
	Expect(err).NotTo(HaveOccurred())
	w.manifest.serviceAccount, w.manifest.role, w.manifest.binding = agents.serviceAccount, agents.role, agents.binding
}

// applyAgents is applyInjected with the label for agents. Only the test's program answers the hook of the sidecar, by a command.
func (w *workload) applyAgents(ctx context.Context) {
	GinkgoHelper()
	option := regexp.MustCompile(`(?m)^( *)- --partitions$`)
	manifests := w.injected(ctx, "--by=agent")
	Expect(manifests).To(And(MatchRegexp(option.String()), ContainSubstring("idalloc.dev/assign: agent")))
	Expect(w.kubectlIn(ctx, option.ReplaceAllString(manifests, "$0\n$1- --drain-exec=/worker stopped"), "apply", "-f", "-")).Error().NotTo(HaveOccurred())
}

// expectNoRights sees that the account of the pods may do nothing with workloads.
func (w *workload) expectNoRights(ctx context.Context) {
	GinkgoHelper()
	as := "--as=system:serviceaccount:" + w.namespace + ":" + w.manifest.serviceAccount.Name
	for _, verb := range []string{"get", "list", "watch", "patch", "update"} {
		for _, resource := range []string{"deployments.apps/" + name, "replicasets.apps"} {
			says, err := w.kubectl(ctx, "auth", "can-i", verb, resource, as)
			Expect(err).To(HaveOccurred(), "kubectl exits with 1")
			Expect(strings.TrimSpace(says)).To(Equal("no"), verb+" "+resource)
		}
	}
	Expect(w.kubectl(ctx, "auth", "can-i", "patch", "pods", as)).To(ContainSubstring("yes"))
}

func (w *workload) receiptOf(ctx context.Context, pod string) string {
	GinkgoHelper()
	p, err := client.CoreV1().Pods(w.namespace).Get(ctx, pod, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return p.Annotations[receipt.Key]
}

// explained returns what "kubectl idalloc explain" says of a pod.
func (w *workload) explained(ctx context.Context, pod string) string {
	GinkgoHelper()
	says, err := w.plugin(ctx, "", "explain", pod, "-n", w.namespace)
	Expect(err).NotTo(HaveOccurred())
	return says
}

// scaleController sets the number of the controller's pods, and waits until they are there or gone.
func scaleController(ctx context.Context, replicas string) {
	GinkgoHelper()
	w := &workload{namespace: "idalloc-system"}
	Expect(w.kubectl(ctx, "scale", "deployment", "idalloc-controller", "--replicas="+replicas)).Error().NotTo(HaveOccurred())
	Expect(w.kubectl(ctx, "rollout", "status", "deployment/idalloc-controller", "--timeout=2m")).Error().NotTo(HaveOccurred())
	if replicas == "0" {
		Expect(w.kubectl(ctx, "wait", "pod", "-l", "app.kubernetes.io/name=idalloc-controller", "--for=delete", "--timeout=2m")).Error().NotTo(HaveOccurred())
	}
}
