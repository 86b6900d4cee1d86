//go:build e2e

package e2e

import (
	"context"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/test/overlap"
)

var _ = Describe("A revision whose program ends as soon as it has an id", func() {
	It("under idalloc run leaves every id worked on by a pod of the revision before", func(ctx SpecContext) {
		w, before := startLinked(ctx, 3, wrapped)
		since := overlap.Now()
		w.revise(ctx, ends)
		Eventually(func(g Gomega, ctx context.Context) {
			pods, _ := w.others(ctx, g, before)
			g.Expect(pods).To(ContainElement(Satisfy(crashed)), "it had an id, and its program ended")
			w.keptBy(ctx, g, before)
		}).WithContext(ctx).Should(Succeed())
		reportf("longest time without a holder per id, while a revision of 3 tries and fails under idalloc run", "%s", describeAbsences(absences(w.records(since))))
		w.undo(ctx)
		w.held(ctx, 3)
	}, SpecTimeout(2*patience))

	It("linked leaves them so, too, and says what is wrong where people look", func(ctx SpecContext) {
		w, before := startLinked(ctx, 3)
		since := overlap.Now()
		w.revise(ctx, fails)
		var broken corev1.Pod
		Eventually(func(g Gomega, ctx context.Context) {
			pods, _ := w.others(ctx, g, before)
			i := slices.IndexFunc(pods, crashed)
			g.Expect(i).NotTo(Equal(-1), "it had an id, and its program ended")
			broken = pods[i]
			w.keptBy(ctx, g, before)
		}).WithContext(ctx).Should(Succeed())
		Expect(w.records(since)).To(ContainElement(And(HaveField("Pod", broken.Name), HaveField("ID", Not(Equal(overlap.None))))), "it worked under an id")
		Expect(ended(broken.Status.ContainerStatuses[0]).Message).To(ContainSubstring("FAIL_AFTER"), "what kubectl describe shows")

		By("waiting for half a minute until the pod that stands back tells why")
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(w.kubectl(ctx, "describe", "pod", broken.Name)).To(MatchRegexp(`Warning\s+WaitingForSlot\s.*idalloc\s+no id yet: idalloc waits for a later try: this pod's program ended by itself`))
			w.keptBy(ctx, g, before)
		}).WithContext(ctx).Should(Succeed())
		reportf("longest time without a holder per id, while a linked revision of 3 tries and fails", "%s", describeAbsences(absences(w.records(since))))

		w.undo(ctx)
		w.held(ctx, 3)
	}, SpecTimeout(2*patience))
})

var _ = Describe("A revision of which one pod never starts", func() {
	// That pod is the oldest: it would be the first to get a slot.
	It("goes as far as it would without idalloc", func(ctx SpecContext) {
		// Nobody hands over in this example: a slot that is lost to the pod is lost to all.
		w := prepare(ctx, files, 3, rolling("1", "1"))
		plain := w.withoutIdalloc()
		w.apply(ctx)
		w.create(ctx, plain)
		w.held(ctx, 3)
		w.ready(ctx, plain.Name, 3, 3)

		gated := `{"spec":{"template":{"spec":{"schedulingGates":[{"name":"` + gate + `"}]}}}}`
		for _, deployment := range []string{name, plain.Name} {
			Expect(w.kubectl(ctx, "patch", "deployment", deployment, "-p", gated)).Error().NotTo(HaveOccurred())
		}
		stuck := map[string]string{}
		let := func(g Gomega, ctx context.Context) {
			for _, deployment := range []string{name, plain.Name} {
				w.startAllBut(ctx, g, deployment, stuck)
			}
		}
		By("waiting for how far Kubernetes alone comes, and then for as much")
		for _, deployment := range []string{plain.Name, name} {
			Eventually(func(g Gomega, ctx context.Context) {
				let(g, ctx)
				w.expectReady(ctx, g, deployment, 3, 2)
			}).WithContext(ctx).Should(Succeed())
		}

		Eventually(func(g Gomega, ctx context.Context) {
			pods, held := w.others(ctx, g, nil)
			g.Expect(pods).To(HaveLen(3))
			g.Expect(held).To(HaveLen(2))
			g.Expect(slices.Collect(maps.Values(held))).NotTo(ContainElement(stuck[name]))
			w.keptBy(ctx, g, held)
		}).WithContext(ctx).Should(Succeed())

		By("letting it start")
		w.start(ctx, NewGomega(Fail), stuck[name])
		w.held(ctx, 3)
	}, SpecTimeout(2*patience))
})

// gate keeps a pod from its node until somebody takes it away.
const gate = "idalloc.test/never"

// Revisions that take an id and end soon after. Their readiness probes find nobody: a pod that was Ready for a moment would be
// available to Kubernetes, which ends an old pod then.
const (
	ends  = `{"name":"worker","command":["/idalloc","run","--http-address=:9090","--","/idalloc","no-such-command"]}`
	fails = `{"name":"worker","env":[{"name":"FAIL_AFTER","value":"100ms"},{"name":"HTTP_ADDRESS","value":":9090"}]}`
)

// revise begins a revision with a patch of the container.
func (w *workload) revise(ctx context.Context, container string) {
	GinkgoHelper()
	Expect(w.kubectl(ctx, "patch", "deployment", name, "-p", `{"spec":{"template":{"spec":{"containers":[`+container+`]}}}}`)).Error().NotTo(HaveOccurred())
}

// keptBy expects that each of these pods has an id, by the word of the assignment, and works under it.
func (w *workload) keptBy(ctx context.Context, g Gomega, h holders) {
	now := w.assignment(ctx, g)
	for _, pod := range h {
		id := now.id(pod)
		g.Expect(id).NotTo(Equal(overlap.None), "%s has no id in %v", pod, now)
		last, err := w.lastSample(pod)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(last.ID).To(Equal(id), "what "+pod+" says about itself")
	}
}

// ended returns the newest end of a container, with exit code -1 if it did not end yet.
func ended(s corev1.ContainerStatus) corev1.ContainerStateTerminated {
	for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
		if state.Terminated != nil {
			return *state.Terminated
		}
	}
	return corev1.ContainerStateTerminated{ExitCode: -1}
}

// withoutIdalloc returns a Deployment like the workload's, of pods that have no id and are Ready when they run.
func (w *workload) withoutIdalloc() *appsv1.Deployment {
	const plain = "plain"
	d := w.manifest.deployment.DeepCopy()
	labels := map[string]string{"app.kubernetes.io/name": plain}
	d.Name, d.Labels, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = plain, labels, labels, labels
	pod := &d.Spec.Template.Spec
	pod.InitContainers = nil
	pod.Containers = slices.DeleteFunc(pod.Containers, func(c corev1.Container) bool { return c.Name != name })
	pod.Containers[0].Command, pod.Containers[0].Env = []string{w.program()}, nil // it logs nothing
	return d
}

// create creates a Deployment beside the workload. Its pods are gone before the spec is over.
func (w *workload) create(ctx context.Context, d *appsv1.Deployment) {
	GinkgoHelper()
	_, err := client.AppsV1().Deployments(w.namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		Expect(w.kubectl(ctx, "delete", "deployment", d.Name, "--ignore-not-found", "--cascade=foreground", "--timeout=2m")).Error().NotTo(HaveOccurred())
	}, NodeTimeout(patience))
}

// ready waits until a Deployment has n pods, all of its newest revision, of which some are Ready.
func (w *workload) ready(ctx context.Context, deployment string, n, ready int32) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) { w.expectReady(ctx, g, deployment, n, ready) }).WithContext(ctx).Should(Succeed())
}

func (w *workload) expectReady(ctx context.Context, g Gomega, deployment string, n, ready int32) {
	d, err := client.AppsV1().Deployments(w.namespace).Get(ctx, deployment, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
	g.Expect([]int32{d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas}).To(Equal([]int32{n, n, ready}), "%s: replicas, updated, ready", deployment)
}

// startAllBut takes the gate away from the pods of a Deployment, but not from the oldest, which it notes in stuck.
func (w *workload) startAllBut(ctx context.Context, g Gomega, deployment string, stuck map[string]string) {
	list, err := client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + deployment})
	g.Expect(err).NotTo(HaveOccurred())
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return len(p.Spec.SchedulingGates) == 0 })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, p := range pods {
		if stuck[deployment] == "" {
			stuck[deployment] = p.Name
		}
		if p.Name != stuck[deployment] {
			w.start(ctx, g, p.Name)
		}
	}
}

// start takes the gate away from a pod.
func (w *workload) start(ctx context.Context, g Gomega, pod string) {
	_, err := client.CoreV1().Pods(w.namespace).Patch(ctx, pod, types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/schedulingGates"}]`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred(), pod)
}
