package allocation

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// verify runs the command on the owner as the administrator.
func (w *workload) verify(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return w.idalloc(ctx, "", append([]string{"verify", w.ref.String(), "-n", w.Name}, args...)...)
}

// verified expects that nothing is wrong, or not for long.
func (w *workload) verified(ctx context.Context) {
	GinkgoHelper()
	got := w.verify(ctx, "--wait=1m")
	Expect(got.Code).To(BeZero(), "%s%s", got.Stdout, got.Stderr)
}

// verdict is verify's output for machines.
type verdict struct {
	Owner    string `json:"owner"`
	OK       bool   `json:"ok"`
	Findings []struct {
		Kind   string `json:"kind"`
		ID     *int   `json:"id"`
		Pod    string `json:"pod"`
		Detail string `json:"detail"`
	} `json:"findings"`
	Warnings []string `json:"warnings"`
}

// verdict runs verify and expects this exit code.
func (w *workload) verdict(ctx context.Context, code int, args ...string) verdict {
	GinkgoHelper()
	got := w.verify(ctx, append([]string{"-o", "json"}, args...)...)
	Expect(got.Code).To(Equal(code), "%s%s", got.Stdout, got.Stderr)
	var v verdict
	Expect(json.Unmarshal([]byte(got.Stdout), &v)).To(Succeed(), got.Stdout)
	Expect(v.OK).To(Equal(code == 0))
	return v
}

// found expects one finding of this kind.
func (v verdict) found(kind string, id int, pod string) {
	GinkgoHelper()
	Expect(v.Findings).To(HaveLen(1))
	Expect(v.Findings[0]).To(And(HaveField("Kind", kind), HaveField("Pod", pod)))
	if id >= 0 {
		Expect(v.Findings[0].ID).To(HaveValue(Equal(id)))
	}
}

var _ = Describe("verify", func() {
	// Nothing runs in the pods: init claims once for each, and nobody repairs what the spec breaks.
	var (
		w    *workload
		pods assignment.Slots
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, store.Deployment)
		for _, pod := range w.idle(ctx, 2) {
			Expect(w.idalloc(ctx, pod.Name, "init", "--dir", GinkgoT().TempDir())).To(HaveField("Code", 0))
		}
		pods = w.assignment(ctx)
	})

	It("finds nothing, and warns of a rolling update that would wait for ever", func(ctx SpecContext) {
		v := w.verdict(ctx, 0)
		Expect(v.Owner).To(Equal("Deployment/worker"))
		Expect(v.Findings).To(BeEmpty())
		Expect(v.Warnings).To(ConsistOf(And(ContainSubstring("maxUnavailable is 0"), ContainSubstring("maxSurge: 0"), ContainSubstring("--drain-exec"))))
		got := w.verify(ctx)
		Expect(got.Stdout).To(And(ContainSubstring("warning: a rolling update"), HaveSuffix("Deployment/worker: ok: live pods hold 2 of 2 ids, 0 wait\n")))

		By("using a strategy that ends old pods first")
		w.patchOwner(ctx, types.MergePatchType, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}`)
		Expect(w.verdict(ctx, 0, "--fail-on-warnings").Warnings).To(BeEmpty())
	})

	It("says that a rolling update is stuck when a new pod waits and no old one hands over", Label(nightly), func(ctx SpecContext) {
		w.stall(ctx)
		waiter := w.stalled(ctx, 1)[0].Name
		Expect(w.verdict(ctx, 0).Warnings).To(ContainElement(ContainSubstring("would wait for ever")), "the new pod has not said yet that it waits")
		By("letting it say so")
		claiming, stop := context.WithCancel(ctx)
		ended := make(chan result, 1)
		go func() {
			defer GinkgoRecover()
			ended <- w.idalloc(claiming, waiter, "init", "--dir", GinkgoT().TempDir())
		}()
		Eventually(func() int { return w.verify(ctx).Code }).WithContext(ctx).Should(Equal(1))
		stop()
		Eventually(ended).WithContext(ctx).Should(Receive())
		v := w.verdict(ctx, 1)
		v.found("stuck", -1, waiter)
		Expect(v.Findings[0].Detail).To(ContainSubstring("kubectl patch deployment worker -n " + w.Name))

		By("going the way out")
		w.patchOwner(ctx, types.MergePatchType, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}`)
		Eventually(func() string { return w.verify(ctx).Stdout }).WithContext(ctx).ShouldNot(ContainSubstring("stuck"))
	})

	It("says that a rolling update is stuck when Kubernetes says so, until it is undone", Label(nightly), func(ctx SpecContext) {
		w.patchOwner(ctx, types.MergePatchType, `{"spec":{"progressDeadlineSeconds":1}}`)
		w.stall(ctx)
		Eventually(func(g Gomega) {
			got := w.verify(ctx)
			g.Expect(got.Code).To(Equal(1))
			g.Expect(got.Stdout).To(ContainSubstring("stuck: the rolling update of Deployment/worker is stuck: "))
			g.Expect(got.Stdout).To(ContainSubstring("has timed out progressing"))
		}).WithContext(ctx).Should(Succeed())
		w.undo(ctx)
		Expect(w.idalloc(ctx, "", "gc", "deployment/worker", "-n", w.Name)).To(HaveField("Code", 0)) // undo brings old annotations back
		w.verified(ctx)
	})

	It("finds an id that nobody holds while a pod waits, and with --wait gives the pod time", Label(nightly), func(ctx SpecContext) {
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		var waiter string
		Eventually(func(g Gomega) { waiter = w.newcomer(ctx, g, pods, 3) }).WithContext(ctx).Should(Succeed())
		w.verdict(ctx, 1).found("unheld", 2, waiter)
		got := w.verify(ctx)
		Expect(got.Stdout).To(ContainSubstring("unheld: id 2 is free while pod " + waiter + " waits"))
		Expect(got.Stderr).To(HavePrefix("error: Deployment/worker in namespace " + w.Name))

		By("claiming while verify waits")
		seen := make(chan result, 1)
		go func() {
			defer GinkgoRecover()
			seen <- w.verify(ctx, "--wait=1m")
		}()
		Expect(w.idalloc(ctx, waiter, "init", "--dir", GinkgoT().TempDir())).To(HaveField("Code", 0))
		Eventually(seen).WithContext(ctx).Should(Receive(HaveField("Code", 0)))
	})

	It("finds the id of a dead pod, until gc has freed it and its successor claims", Label(nightly), func(ctx SpecContext) {
		Expect(env.Node.Evict(ctx, w.Name, pods[1])).To(Succeed())
		Eventually(func(g Gomega) { w.newcomer(ctx, g, pods, 3) }).WithContext(ctx).Should(Succeed())
		v := w.verdict(ctx, 1)
		v.found("dead", 1, pods[1])
		Expect(v.Findings[0].Detail).To(And(ContainSubstring("which is Failed"), ContainSubstring("idalloc gc deployment/worker -n "+w.Name)))
		Expect(w.idalloc(ctx, "", "gc", "deployment/worker", "-n", w.Name)).To(HaveField("Code", 0))
		w.verdict(ctx, 1, "--wait=100ms").found("unheld", 1, w.newcomer(ctx, Default, pods, 3))
		Expect(w.idalloc(ctx, w.newcomer(ctx, Default, pods, 3), "init", "--dir", GinkgoT().TempDir())).To(HaveField("Code", 0))
		w.verdict(ctx, 0)
	})

	It("finds what somebody else wrote and nobody restored yet", Label(nightly), func(ctx SpecContext) {
		By("writing what makes sense")
		w.annotate(ctx, map[string]any{assignment.Key: assignment.Slots{0: pods[1], 1: pods[0]}.Encode()})
		Expect(w.verdict(ctx, 1).Findings).To(HaveEach(HaveField("Kind", "mismatch")))
		By("writing what does not")
		w.annotate(ctx, map[string]any{assignment.Key: `{"01":"a"}`})
		v := w.verdict(ctx, 1)
		v.found("damaged", -1, "")
		Expect(v.Findings[0].Detail).To(ContainSubstring(`not an id: "01"`))
		By("restoring it")
		Expect(w.idalloc(ctx, "", "gc", "deployment/worker", "-n", w.Name)).To(HaveField("Code", 0))
		w.verdict(ctx, 0)
		Expect(w.assignment(ctx)).To(Equal(pods))
		By("removing everything")
		w.annotate(ctx, map[string]any{assignment.Key: nil})
		w.verdict(ctx, 1).found("changed", -1, "")
		Expect(w.idalloc(ctx, "", "gc", "deployment/worker", "-n", w.Name)).To(HaveField("Code", 0))
		w.verdict(ctx, 0)
		Expect(w.assignment(ctx)).To(Equal(pods))
	})

	It("exits 2 for what it does not understand, 1 for no owner, 4 for a missing permission", Label(nightly), func(ctx SpecContext) {
		for _, args := range [][]string{{"verify"}, {"verify", "worker"}, {"verify", "deploy/worker", "-o", "yaml"}, {"verify", "deploy/worker", "--wait=-1s"}} {
			Expect(w.idalloc(ctx, "", args...)).To(HaveField("Code", 2), strings.Join(args, " "))
		}
		Expect(w.idalloc(ctx, "", "verify", "deploy/none", "-n", w.Name)).To(And(HaveField("Code", 1),
			HaveField("Stderr", ContainSubstring("check the kind, the name and the namespace"))))

		Expect(env.Node.Evict(ctx, w.Name, pods[0])).To(Succeed()) // something to wait for
		for account, tc := range map[string]struct {
			verbs []string
			says  string
		}{
			"getter": {[]string{"get"}, `add verb "list" on resource "pods"`},
			"lister": {[]string{"get", "list"}, `add verb "watch" on resource`},
		} {
			Expect(w.Grant(ctx, account,
				rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets"}, Verbs: tc.verbs},
				rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: tc.verbs},
			)).To(Succeed())
			config, err := env.ControlPlane.ServiceAccountConfig(ctx, w.Name, account)
			Expect(err).NotTo(HaveOccurred())
			kubeconfig, err := env.ControlPlane.WriteKubeconfig(w.Name+"-"+account, config)
			Expect(err).NotTo(HaveOccurred())
			Eventually(func(g Gomega) { // a new Role takes effect a moment later
				got := w.verify(ctx, "--kubeconfig", kubeconfig, "--wait=1m")
				g.Expect(got.Code).To(Equal(4), got.Stderr)
				g.Expect(got.Stderr).To(ContainSubstring(tc.says))
			}).WithContext(ctx).Should(Succeed())
		}
	})
})
