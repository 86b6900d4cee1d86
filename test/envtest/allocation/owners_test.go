package allocation

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// jobSpec is a pod that works under its id for a moment, while check, a shell command that has the
// id in $id, holds.
func (w *workload) jobSpec(check string) *corev1.PodSpec {
	spec := w.podSpec()
	// timeout stands for the end of the work: it says 124 when it was what ended it.
	spec.Containers = spec.Containers[:1]
	spec.Containers[0].Command = []string{"/bin/sh", "-c", `id=$(cat /ids/id) && ` + check + ` && { timeout 0.3 ` + testworker + ` files ` + fileworker + `; test $? -eq 124; }`}
	return spec
}

// complete waits until all of a Job's pods Succeeded and none Failed.
func (w *workload) complete(ctx context.Context, completions int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		job, err := env.Client.BatchV1().Jobs(w.Name).Get(ctx, w.ref.Name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(job.Status.Failed).To(BeZero())
		g.Expect(job.Status.Succeeded).To(Equal(completions))
		g.Expect(job.Status.CompletionTime).NotTo(BeNil())
	}).WithContext(ctx).Should(Succeed())
}

// identities asks the pods with these ids who they are.
func (w *workload) identities(ctx context.Context, held map[int]string) map[int]identity.Identity {
	GinkgoHelper()
	out := map[int]identity.Identity{}
	for id, name := range held {
		var err error
		out[id], err = w.identity(ctx, *w.pod(ctx, name))
		Expect(err).NotTo(HaveOccurred())
	}
	return out
}

// stubborn adds a container that ignores SIGTERM until the file hold is gone. A pod may be deleted once deaf has
// returned for it: before that it may not have begun to ignore anything.
func (w *workload) stubborn(spec *corev1.PodSpec) (hold string, deaf func(ctx context.Context, pods ...string)) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	hold = filepath.Join(dir, "hold")
	Expect(os.WriteFile(hold, nil, 0o600)).To(Succeed())
	spec.Containers = append(spec.Containers, suite.Container("stubborn", "/bin/sh", "-c",
		`trap '' TERM; touch `+dir+`/$POD_NAME; while test -e `+hold+`; do sleep 0.1; done`))
	grace := int64(300)
	spec.TerminationGracePeriodSeconds = &grace
	return hold, func(ctx context.Context, pods ...string) {
		GinkgoHelper()
		for _, pod := range pods {
			ignores := filepath.Join(dir, pod)
			Eventually(ignores).WithContext(ctx).Should(BeAnExistingFile())
		}
	}
}

var _ = Describe("an owner that is a StatefulSet", func() {
	It("gives its pods their ordinal, and a replaced pod its predecessor's", func(ctx SpecContext) {
		w := newWorkload(ctx, store.StatefulSet)
		Expect(w.Create(ctx, suite.StatefulSet("worker", 3, w.podSpec()))).To(Succeed())
		want := map[int]string{0: "worker-0", 1: "worker-1", 2: "worker-2"}
		Expect(w.settled(ctx, 3)).To(Equal(want))
		before := w.identities(ctx, want)
		w.deletePod(ctx, "worker-1")
		Expect(w.settled(ctx, 3)).To(Equal(want))
		after := w.identities(ctx, want)
		Expect(after[1].Token).To(BeNumerically(">", before[1].Token), "a later holder has a higher token")
		Expect(after[0]).To(Equal(before[0]), "a bystander was disturbed")
	})

	It("gives ids from 0 whatever its ordinals start with, and a pod its predecessor's", Label(nightly), func(ctx SpecContext) {
		w := newWorkload(ctx, store.StatefulSet)
		spec := w.podSpec()
		hold, deaf := w.stubborn(spec)
		sts := suite.StatefulSet("worker", 3, spec)
		sts.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
		sts.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		Expect(w.Create(ctx, sts)).To(Succeed())
		want := map[int]string{0: "worker-5", 1: "worker-6", 2: "worker-7"}
		Expect(w.settled(ctx, 3)).To(Equal(want))

		By("scaling up")
		Expect(w.Scale(ctx, store.StatefulSet, "worker", 5)).To(Succeed())
		want[3], want[4] = "worker-8", "worker-9"
		Expect(w.settled(ctx, 5)).To(Equal(want))
		w.verified(ctx)

		By("deleting a pod whose work does not stop: its slot stays its own")
		old, first := w.pod(ctx, "worker-6"), w.identities(ctx, want)
		deaf(ctx, old.Name)
		Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, "worker-6", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() error {
			_, err := w.identity(ctx, *old)
			return err
		}).WithContext(ctx).Should(HaveOccurred(), "its watcher ends")
		Expect(w.assignment(ctx)).To(HaveKeyWithValue(1, old.Name))
		w.verified(ctx)

		By("letting it end: its successor has the same name and another UID")
		Expect(os.Remove(hold)).To(Succeed())
		Eventually(func() types.UID {
			pod, err := env.Client.CoreV1().Pods(w.Name).Get(ctx, "worker-6", metav1.GetOptions{})
			if err != nil {
				return old.UID
			}
			return pod.UID
		}).WithContext(ctx).ShouldNot(Equal(old.UID))
		Expect(w.settled(ctx, 5)).To(Equal(want))
		now := w.identities(ctx, want)
		Expect(now[1].Token).To(BeNumerically(">", first[1].Token), "a later holder has a higher token")
		for _, id := range []int{0, 2, 3, 4} {
			Expect(now[id]).To(Equal(first[id]), "a bystander was disturbed")
		}
		w.verified(ctx)
	})

	It("gives a pod another id than its ordinal's where a live pod has that, after the start of a StatefulSet's ordinals changed", Label(nightly), func(ctx SpecContext) {
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

	It("goes on in order where only a pod with an id is Ready, while the start of its ordinals and the count change", Label(nightly), func(ctx SpecContext) {
		w := newWorkload(ctx, store.StatefulSet)
		spec := w.wrapSpec(works)
		spec.Containers[0].ReadinessProbe.FailureThreshold = 1
		Expect(w.Create(ctx, suite.StatefulSet("worker", 5, spec))).To(Succeed())
		w.settled(ctx, 5)

		By("moving the start: worker-5 gets the id of worker-0, which Kubernetes removes after that")
		_, err := env.Client.AppsV1().StatefulSets(w.Name).Patch(ctx, "worker", types.MergePatchType, []byte(`{"spec":{"ordinals":{"start":1}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			pods, err := w.Pods(ctx, "worker")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(podNames(pods)).To(ContainElement("worker-5")) // until the controller has heard of the start, all is as it was
		}).WithContext(ctx).Should(Succeed())
		Expect(w.settled(ctx, 5)).To(HaveKeyWithValue(0, "worker-5"))

		By("scaling down to one")
		Expect(w.Scale(ctx, store.StatefulSet, "worker", 1)).To(Succeed())
		w.settled(ctx, 1)
		w.verified(ctx)
	})

	It("may begin to run idalloc", Label(nightly), func(ctx SpecContext) {
		w := newWorkload(ctx, store.StatefulSet)
		sets := env.Client.AppsV1().StatefulSets(w.Name)
		Expect(w.Create(ctx, suite.StatefulSet("worker", 2, suite.PodSpec(suite.Container("main", "/bin/sleep", "1000"))))).To(Succeed())
		Eventually(func() ([]corev1.Pod, error) { return w.ReadyPods(ctx, "worker") }).WithContext(ctx).Should(HaveLen(2))

		By("rolling the pods from ordinal 1 on")
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{
			"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": 1}},
			"template":       map[string]any{"spec": w.podSpec()},
		}})
		Expect(err).NotTo(HaveOccurred())
		_, err = sets.Patch(ctx, "worker", types.MergePatchType, patch, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			pod, err := env.Client.CoreV1().Pods(w.Name).Get(ctx, "worker-1", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred()) // for a moment there is none
			g.Expect(pod.Labels).To(HaveKeyWithValue(receipt.IDLabel, "1"))
		}).WithContext(ctx).Should(Succeed())
		w.verified(ctx)

		By("rolling the rest")
		_, err = sets.Patch(ctx, "worker", types.MergePatchType, []byte(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.settled(ctx, 2)).To(Equal(map[int]string{0: "worker-0", 1: "worker-1"}))
		w.verified(ctx)
	})
})

var _ = Describe("an owner that is a Job", func() {
	It("lets seven pods go through three ids", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Job)
		job := suite.Job("worker", 3, w.jobSpec(`test $id -lt 3`))
		completions, none := int32(7), int32(0)
		job.Spec.Completions, job.Spec.BackoffLimit = &completions, &none
		Expect(w.Create(ctx, job)).To(Succeed())
		w.complete(ctx, completions)
		w.verified(ctx)
	})

	It("gives the completion index where it fits, and another id where it does not", Label(nightly), func(ctx SpecContext) {
		w := newWorkload(ctx, store.Job)
		job := suite.Job("worker", 2, w.jobSpec(`test $id -lt 2 && { test $JOB_COMPLETION_INDEX -ge 2 || test $id = $JOB_COMPLETION_INDEX; }`))
		completions, none, indexed := int32(5), int32(0), batchv1.IndexedCompletion
		job.Spec.Completions, job.Spec.BackoffLimit, job.Spec.CompletionMode = &completions, &none, &indexed
		Expect(w.Create(ctx, job)).To(Succeed())
		w.complete(ctx, completions)
		w.verified(ctx)
	})

	It("counts for itself although a CronJob is above it", Label(nightly), func(ctx SpecContext) {
		w := newWorkload(ctx, store.Job)
		ref, err := store.ParseRef("job/worker-b", w.Name)
		Expect(err).NotTo(HaveOccurred())
		other := &workload{Namespace: w.Namespace, ref: ref, store: w.store, probe: GinkgoT().TempDir()}
		DeferCleanup(other.checkOverlap)

		stopped := true
		cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: batchv1.CronJobSpec{
			Schedule: "0 0 1 1 *", Suspend: &stopped, JobTemplate: batchv1.JobTemplateSpec{Spec: suite.Job("worker", 2, w.podSpec()).Spec},
		}}
		cron, err = env.Client.BatchV1().CronJobs(w.Name).Create(ctx, cron, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, of := range []*workload{w, other} {
			job := suite.Job(of.ref.Name, 2, of.podSpec())
			job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
			Expect(w.Create(ctx, job)).To(Succeed())
		}
		for _, of := range []*workload{w, other} {
			of.settled(ctx, 2)
			of.verified(ctx)
		}
		cron, err = env.Client.BatchV1().CronJobs(w.Name).Get(ctx, "nightly", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(cron.Annotations).NotTo(HaveKey(assignment.Key))
	})
})

var _ = Describe("an owner that is a bare ReplicaSet", func() {
	It("keeps ids dense while it is scaled and loses pods", Label(nightly), func(ctx SpecContext) {
		w := newWorkload(ctx, store.ReplicaSet)
		Expect(w.Create(ctx, suite.ReplicaSet("worker", 2, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 2)
		Expect(w.Scale(ctx, store.ReplicaSet, "worker", 4)).To(Succeed())
		four := w.settled(ctx, 4)
		Expect(four).To(And(HaveKeyWithValue(0, before[0]), HaveKeyWithValue(1, before[1])))
		w.deletePod(ctx, four[2])
		after := w.settled(ctx, 4)
		Expect(after[2]).NotTo(Equal(four[2]))
		w.ranked(ctx, slices.Collect(maps.Values(after))...)
		Expect(w.Scale(ctx, store.ReplicaSet, "worker", 1)).To(Succeed())
		Eventually(func(g Gomega) {
			pods, err := w.Pods(ctx, "worker")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(1))
			g.Expect(pods[0].Name).To(Equal(before[0]))
		}).WithContext(ctx).Should(Succeed())
		w.verified(ctx)
		Expect(w.Scale(ctx, store.ReplicaSet, "worker", 2)).To(Succeed())
		Expect(w.settled(ctx, 2)).To(HaveKeyWithValue(0, before[0]), "the next write takes the entries above the count away")
		w.verified(ctx)
	})
})

var _ = Describe("an owner that is a Deployment", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	It("may begin to run idalloc", Label(nightly), func(ctx SpecContext) {
		w.idle(ctx, 4)
		deployments := env.Client.AppsV1().Deployments(w.Name)
		By("rolling one pod and then none, since that one is not available for an hour")
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{
			"minReadySeconds": 3600, "progressDeadlineSeconds": 7200,
			"template": map[string]any{"spec": w.podSpec()},
		}})
		Expect(err).NotTo(HaveOccurred())
		_, err = deployments.Patch(ctx, "worker", types.MergePatchType, patch, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			held := w.assignment(ctx)
			g.Expect(held).NotTo(BeEmpty())
			for _, name := range held {
				g.Expect(w.pod(ctx, name).Labels).To(HaveKey(receipt.IDLabel))
			}
		}).WithContext(ctx).Should(Succeed())
		w.verified(ctx) // the old pods wait for nothing

		By("letting the rollout go on")
		_, err = deployments.Patch(ctx, "worker", types.MergePatchType, []byte(`{"spec":{"minReadySeconds":0}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		w.settled(ctx, 4)
		Eventually(func(g Gomega) {
			pods, err := w.Pods(ctx, "worker")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(4))
		}).WithContext(ctx).Should(Succeed())
		w.verified(ctx)
	})
})
