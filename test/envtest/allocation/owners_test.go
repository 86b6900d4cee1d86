package allocation

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
