package allocation

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// replaceByForce does what kubectl replace --force does with a pod as it was read: it deletes the pod by force and makes another one of the
// same name, with the same labels and annotations. No controller makes a pod meanwhile, nor later.
func (w *workload) replaceByForce(ctx context.Context, name string) {
	GinkgoHelper()
	w.allowPods(ctx, 1, corev1.ResourceQuotaScopeNotTerminating) // pods without a deadline
	old := w.pod(ctx, name)
	next := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: old.Labels, Annotations: old.Annotations, OwnerReferences: old.OwnerReferences},
		Spec:       old.Spec,
	}
	deadline := int64(3600)
	next.Spec.NodeName, next.Spec.ActiveDeadlineSeconds = "", &deadline
	w.forceDelete(ctx, name)
	Eventually(func() error {
		_, err := env.Client.CoreV1().Pods(w.Name).Create(ctx, next, metav1.CreateOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
	Expect(w.pod(ctx, name).UID).NotTo(Equal(old.UID))
}

var _ = Describe("a pod of a Deployment that is replaced under its own name", func() {
	It("has a higher token than its predecessor", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		pods := podNames(w.idle(ctx, 2))
		first, err := w.instance(ctx, pods[0]).Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		before, err := w.instance(ctx, pods[1]).Wait(ctx)
		Expect(err).NotTo(HaveOccurred())

		w.replaceByForce(ctx, pods[1])
		after, err := w.instance(ctx, pods[1]).Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(after.ID).To(Equal(before.ID))
		Expect(after.Epoch).To(BeNumerically(">", before.Epoch))
		Expect(w.assignment(ctx)).To(Equal(assignment.Slots{first.ID: pods[0], before.ID: pods[1]}))
		Expect(w.owner(ctx).Record.State.UIDs).To(HaveKeyWithValue(after.ID, assignment.ShortUID(string(w.pod(ctx, pods[1]).UID))))
	})

	It("waits in strict mode while its predecessor runs on without contact", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		rec := newRecorder(w)
		pods := podNames(w.idle(ctx, 2))
		rec.start(ctx, pods[0])
		rec.assigned(ctx, pods[0])
		wire := newLink()
		defer wire.cut(false)
		old := rec.start(ctx, pods[1], strict(allocator.MinFenceAfter), wire.options)
		before := rec.assigned(ctx, pods[1])[pods[1]]

		wire.cut(true)
		w.replaceByForce(ctx, pods[1])
		next := rec.start(ctx, pods[1], strict(allocator.MinFenceAfter))
		Eventually(func() string { return waitingFor(ctx, next) }).WithContext(ctx).Should(ContainSubstring("quarantine"))
		Expect(next.Current().Assigned()).To(BeFalse())
		Eventually(func() identity.State { return old.Current().State }).WithContext(ctx).Should(Equal(identity.StateFenced))
		Expect(next.Current().Assigned()).To(BeFalse(), "the quarantine is longer than fence-after")
		_, in := w.owner(ctx).Record.State.Quarantine.Since(before.ID)
		Expect(in).To(BeTrue())
	})
})
