package allocation

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// fenceAfter is long enough that a machine that is busy does not fence anybody.
const fenceAfter = 10 * time.Second

func strict(o *idalloc.Options) { o.FenceAfter = fenceAfter }

// forceDelete deletes a pod's object without waiting for anything.
func (w *workload) forceDelete(ctx context.Context, name string) {
	GinkgoHelper()
	now := int64(0)
	Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
}

// lease returns the Lease of a slot.
func (w *workload) lease(ctx context.Context, id int) *coordinationv1.Lease {
	GinkgoHelper()
	lease, err := env.Client.CoordinationV1().Leases(w.Name).Get(ctx, store.LeaseName(w.ref.String(), id), metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return lease
}

var _ = Describe("strict mode", func() {
	It("gives ids at once, and has a Lease for each, which it gives back", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment, suite.StrictRules()...)
		instances, held := map[string]*idalloc.Instance{}, map[string]identity.Identity{}
		for _, name := range podNames(w.idle(ctx, 2)) {
			instances[name] = w.instance(ctx, name, strict)
		}
		for name, i := range instances {
			id, err := i.Wait(ctx)
			Expect(err).NotTo(HaveOccurred())
			held[name] = id
			lease := w.lease(ctx, id.ID)
			Expect(lease.Spec.HolderIdentity).To(HaveValue(Equal(name + "/" + string(w.pod(ctx, name).UID))))
			Expect(lease.Spec.LeaseDurationSeconds).To(HaveValue(BeEquivalentTo((fenceAfter + assignment.StopGrace).Seconds())))
			Expect(lease.OwnerReferences).To(BeEmpty(), "it outlives the workload, because work under it may")
		}
		list, err := env.Client.CoordinationV1().Leases(w.Name).List(ctx, metav1.ListOptions{LabelSelector: "idalloc.dev/owner=deployment.worker"})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveLen(2))

		By("giving them back")
		for _, i := range instances {
			Expect(i.Close(ctx)).To(Succeed())
		}
		for _, id := range held {
			Expect(w.lease(ctx, id.ID).Spec.HolderIdentity).To(Or(BeNil(), HaveValue(BeEmpty())))
		}
		w.verified(ctx)
	})
})
