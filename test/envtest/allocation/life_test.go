package allocation

import (
	"maps"
	"os"
	"slices"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var _ = Describe("a Deployment's pods", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	DescribeTable("claim an id each", func(ctx SpecContext, replicas int32) {
		Expect(w.Create(ctx, suite.Deployment("worker", replicas, w.podSpec()))).To(Succeed())
		w.settled(ctx, int(replicas))
	},
		Entry("alone", int32(1)),
		Entry("ten at once", int32(10)),
	)

	It("claim an id each, a hundred at once", func(ctx SpecContext) {
		spec := w.podSpec()
		spec.InitContainers, spec.Containers = nil, spec.Containers[1:] // the watcher alone: a hundred processes, not three hundred
		Expect(w.Create(ctx, suite.Deployment("worker", 100, spec))).To(Succeed())
		w.settled(ctx, 100)
	})

	It("get the freed id when one of them is replaced", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 3)
		w.deletePod(ctx, before[1])
		after := w.settled(ctx, 3)
		Expect(after[1]).NotTo(Equal(before[1]))
		Expect(after[0]).To(Equal(before[0]), "a bystander moved")
		Expect(after[2]).To(Equal(before[2]), "a bystander moved")
	})

	It("keep dense ids while the count goes 5, 8, 3, 0, 4 and low ids are killed", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 5, w.podSpec()))).To(Succeed())
		five := w.settled(ctx, 5)

		Expect(w.Scale(ctx, store.Deployment, "worker", 8)).To(Succeed())
		eight := w.settled(ctx, 8)
		for id, pod := range five {
			Expect(eight[id]).To(Equal(pod), "a scale-up moved id %d", id)
		}

		By("making the pods with the lowest ids the first to be deleted, so that the survivors have to move")
		costs := map[string]int{}
		for id, pod := range eight {
			costs[pod] = id
		}
		w.rank(ctx, costs)
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		three := w.settled(ctx, 3)
		for _, pod := range three {
			Expect([]string{eight[5], eight[6], eight[7]}).To(ContainElement(pod))
		}

		Expect(w.Scale(ctx, store.Deployment, "worker", 0)).To(Succeed())
		Eventually(func(g Gomega) {
			pods, err := w.Pods(ctx, "worker")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(BeEmpty())
		}).WithContext(ctx).Should(Succeed())

		Expect(w.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
		w.settled(ctx, 4)
	})

	It("wait for room, say for what, and take it when there is some", func(ctx SpecContext) {
		// With the default strategy and one replica, a new revision's pod starts before there is room.
		Expect(w.Create(ctx, suite.Deployment("worker", 1, w.podSpec()))).To(Succeed())
		old := w.settled(ctx, 1)[0]
		w.restart(ctx)
		var waiter string
		Eventually(func(g Gomega) {
			waiter = w.newcomer(ctx, g, map[int]string{0: old}, 2)
			g.Expect(w.log(waiter)).To(ContainSubstring("waiting for a slot"))
		}).WithContext(ctx).Should(Succeed())
		Expect(w.log(waiter)).To(And(ContainSubstring("Deployment/worker has count 1"), ContainSubstring("maxSurge: 0")))
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(0, old))
		// The old revision's ReplicaSet would replace it with a pod that may be faster than the waiter.
		w.allowPods(ctx, 1)
		w.forceDelete(ctx, old)
		Eventually(func() string { return w.assignment(ctx)[0] }).WithContext(ctx).Should(Equal(waiter))
	})

	It("keep their ids when their containers restart in place", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 3)
		first, err := w.identity(ctx, *w.pod(ctx, before[1]))
		Expect(err).NotTo(HaveOccurred())
		Expect(env.Node.Signal(w.Name, before[1], "idalloc", syscall.SIGKILL)).To(Succeed())
		Eventually(func() int32 { return restarts(w.pod(ctx, before[1]), "idalloc") }).WithContext(ctx).Should(BeNumerically(">", 0))
		Expect(w.settled(ctx, 3)).To(Equal(before))
		again, err := w.identity(ctx, *w.pod(ctx, before[1]))
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Epoch).To(BeNumerically(">=", first.Epoch), "a token never falls")
	})

	It("keep an id while Terminating, until the pod is gone", func(ctx SpecContext) {
		spec := w.podSpec()
		hold, deaf := w.stubborn(spec)
		Expect(w.Create(ctx, suite.Deployment("worker", 2, spec))).To(Succeed())
		before := w.settled(ctx, 2)
		deaf(ctx, before[0])
		Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, before[0], metav1.DeleteOptions{})).To(Succeed())
		var waiter string
		Eventually(func(g Gomega) {
			waiter = w.newcomer(ctx, g, before, 3)
			g.Expect(w.log(waiter)).To(ContainSubstring("waiting for a slot"))
		}).WithContext(ctx).Should(Succeed())
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(0, before[0]), "a Terminating pod is alive")
		Expect(os.Remove(hold)).To(Succeed())
		Expect(w.settled(ctx, 2)).To(Equal(map[int]string{0: waiter, 1: before[1]}))
	})

	It("leave their slot when they are evicted", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 3)
		Expect(env.Node.Evict(ctx, w.Name, before[2])).To(Succeed())
		after := w.settled(ctx, 3)
		Expect(after[2]).NotTo(Equal(before[2]))
		Expect(w.pod(ctx, before[2]).Status.Phase).To(Equal(corev1.PodFailed), "the evicted pod's object stays")
	})

	It("keep their id when somebody relabels them", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 2, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 2)
		w.patchPod(ctx, before[0], `{"metadata":{"labels":{"app":"debugged"}}}`)
		Eventually(func(g Gomega) {
			replacement := w.newcomer(ctx, g, before, 2) // the ReplicaSet replaces the pod that it lost
			g.Expect(w.log(replacement)).To(ContainSubstring("waiting for a slot"))
		}).WithContext(ctx).Should(Succeed())
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(0, before[0]))
		id, err := w.identity(ctx, *w.pod(ctx, before[0]))
		Expect(err).NotTo(HaveOccurred())
		Expect(id.ID).To(Equal(0))
		Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, before[0], metav1.DeleteOptions{})).To(Succeed())
		w.settled(ctx, 2)
	})

	It("run with one native sidecar in place of init container and watcher", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.sidecarSpec()))).To(Succeed())
		before := w.settled(ctx, 3)
		w.deletePod(ctx, before[1])
		after := w.settled(ctx, 3)
		Expect(after[0]).To(Equal(before[0]))
		Expect(after[2]).To(Equal(before[2]))
	})

	It("lose the highest ids in a scale-down, so that nobody moves", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 8, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 8)
		w.ranked(ctx, slices.Collect(maps.Values(before))...)
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		after := w.settled(ctx, 3)
		for id, pod := range after {
			Expect(before).To(HaveKeyWithValue(id, pod))
		}
	})

	It("say pending over HTTP and have no id file while they have none", func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 0, suite.PodSpec(suite.Container("main", "/bin/sleep", "1000"))))).To(Succeed())
		Expect(w.Scale(ctx, store.Deployment, "worker", 1)).To(Succeed())
		i := w.instance(ctx, w.somePods(ctx, 1)[0].Name)
		Expect(i.Wait(ctx)).To(HaveField("ID", 0))
		Expect(w.Scale(ctx, store.Deployment, "worker", 0)).To(Succeed())
		Eventually(i.Current).WithContext(ctx).ShouldNot(HaveField("State", identity.StateAssigned))
	})
})

var _ = Describe("other owners", func() {
	It("give a StatefulSet's pods their ordinal, and a replaced pod its predecessor's", func(ctx SpecContext) {
		w := newWorkload(ctx, store.StatefulSet)
		Expect(w.Create(ctx, suite.StatefulSet("worker", 3, w.podSpec()))).To(Succeed())
		want := map[int]string{0: "worker-0", 1: "worker-1", 2: "worker-2"}
		Expect(w.settled(ctx, 3)).To(Equal(want))
		uid := w.pod(ctx, "worker-1").UID
		w.deletePod(ctx, "worker-1")
		Expect(w.settled(ctx, 3)).To(Equal(want))
		Expect(w.owner(ctx).Record.State.UIDs[1]).To(Equal(assignment.ShortUID(string(w.pod(ctx, "worker-1").UID))))
		Expect(w.owner(ctx).Record.State.UIDs[1]).NotTo(Equal(assignment.ShortUID(string(uid))))
	})

	It("serve a bare ReplicaSet", func(ctx SpecContext) {
		w := newWorkload(ctx, store.ReplicaSet)
		Expect(w.Create(ctx, suite.ReplicaSet("worker", 3, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 3)
		w.deletePod(ctx, before[0])
		w.settled(ctx, 3)
	})

	It("let a Job's next pods have the ids of those that Succeeded", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Job)
		// Each pod claims, keeps its id for a moment, and ends; six completions through two slots.
		main := suite.Container("main", "/bin/sh", "-c", `cat /ids/id && test "$(cat /ids/id)" -lt 2`)
		spec := suite.PodSpec(main)
		spec.InitContainers = []corev1.Container{suite.Container("init", env.Binary, "init", "--dir", "/ids")}
		suite.Share(spec, "/ids")
		job := suite.Job("worker", 2, spec)
		completions := int32(6)
		job.Spec.Completions = &completions
		Expect(w.Create(ctx, job)).To(Succeed())
		Eventually(func(g Gomega) {
			job, err := env.Client.BatchV1().Jobs(w.Name).Get(ctx, "worker", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(job.Status.Failed).To(BeZero())
			g.Expect(job.Status.Succeeded).To(Equal(completions))
		}).WithContext(ctx).Should(Succeed())
	})
})

func restarts(pod *corev1.Pod, container string) int32 {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container {
			return s.RestartCount
		}
	}
	return 0
}
