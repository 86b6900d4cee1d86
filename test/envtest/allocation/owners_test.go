package allocation

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
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

var _ = Describe("an owner that is a Job", func() {
	It("lets seven pods go through three ids", func(ctx SpecContext) {
		w := newWorkload(ctx, kinds.Job)
		job := suite.Job("worker", 3, w.jobSpec(`test $id -lt 3`))
		completions, none := int32(7), int32(0)
		job.Spec.Completions, job.Spec.BackoffLimit = &completions, &none
		Expect(w.Create(ctx, job)).To(Succeed())
		w.complete(ctx, completions)
		w.verified(ctx)
	})
})
