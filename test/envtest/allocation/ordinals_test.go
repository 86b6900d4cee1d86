package allocation

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var _ = Describe("ordinals that change while pods hold ids", func() {
	It("gives a pod another id than its ordinal's where a live pod has that, after the start of a StatefulSet's ordinals changed", func(ctx SpecContext) {
		rec := newRecorder(newWorkload(ctx, store.StatefulSet))
		sts := suite.StatefulSet("worker", 2, suite.PodSpec(suite.Container("main", "/bin/sleep", "1000")))
		sts.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		Expect(rec.Create(ctx, sts)).To(Succeed())
		rec.somePods(ctx, 2)
		goes := rec.start(ctx, "worker-0")
		rec.start(ctx, "worker-1")
		held := rec.assigned(ctx, "worker-0", "worker-1")
		Expect(held["worker-1"].ID).To(Equal(1))
		at := rec.mark()

		Expect(goes.Close(ctx)).To(Succeed())
		_, err := env.Client.AppsV1().StatefulSets(rec.Name).Patch(ctx, "worker", types.MergePatchType, []byte(`{"spec":{"ordinals":{"start":1}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			pods, err := rec.Pods(ctx, "worker")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(podNames(pods)).To(ConsistOf("worker-1", "worker-2"))
		}).WithContext(ctx).Should(Succeed())
		late, err := rec.start(ctx, "worker-2").Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(late.ID).To(BeZero(), "the id of its ordinal, 1, is worker-1's")
		rec.undisturbed(at, map[string]identity.Identity{"worker-1": held["worker-1"]})
	})

	It("gives each pod an id after an Indexed Job's parallelism was raised, and disturbs nobody", func(ctx SpecContext) {
		rec := newRecorder(newWorkload(ctx, store.Job))
		job := suite.Job("worker", 1, suite.PodSpec(suite.Container("main", "/bin/sh", "-c", `test $JOB_COMPLETION_INDEX = 0 || exec sleep 1000`)))
		completions, indexed := int32(4), batchv1.IndexedCompletion
		job.Spec.Completions, job.Spec.CompletionMode = &completions, &indexed
		Expect(rec.Create(ctx, job)).To(Succeed())
		of := func(index string) (name string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				pods, err := rec.Pods(ctx, "worker")
				g.Expect(err).NotTo(HaveOccurred())
				at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Labels[batchv1.JobCompletionIndexAnnotation] == index })
				g.Expect(at).To(BeNumerically(">=", 0))
				name = pods[at].Name
			}).WithContext(ctx).Should(Succeed())
			return name
		}
		second := of("1")
		rec.start(ctx, second)
		held := rec.assigned(ctx, second)
		Expect(held[second].ID).To(BeZero(), "there is one slot")
		at := rec.mark()

		Expect(rec.Scale(ctx, store.Job, "worker", 3)).To(Succeed())
		third, fourth := of("2"), of("3")
		rec.start(ctx, third)
		rec.start(ctx, fourth)
		got := rec.assigned(ctx, third, fourth)
		Expect(got[third].ID).To(Equal(2), "its index")
		Expect(got[fourth].ID).To(Equal(1), "what is left")
		rec.undisturbed(at, held)
	})
})
