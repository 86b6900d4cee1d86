package allocation

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
)

var _ = Describe("two annotation keys", func() {
	const other = "example.com/ids"
	var w *workload

	start := func(ctx context.Context, pod, key string) *idcontext.Instance {
		GinkgoHelper()
		i, err := idcontext.Start(ctx, w.options(ctx, pod, func(o *idcontext.Options) { o.AnnotationKey = key }))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_ = i.Close(ctx) // who cannot write the owner cannot give its slot back
		})
		return i
	}

	// refused expects that a pod with this key gets no id, and is told why and what to do.
	refused := func(ctx context.Context, pod, key, has string) {
		GinkgoHelper()
		_, err := start(ctx, pod, key).Wait(ctx)
		Expect(err).To(MatchError(store.ErrOtherKey))
		Expect(err).To(MatchError(And(ContainSubstring(has+", and this process looks in "+key), ContainSubstring("idalloc gc Deployment/worker -n %s --annotation-key=%s", w.Name, has))))
	}

	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	It("are refused, until one has let go", Label(nightly), func(ctx SpecContext) {
		pods := podNames(w.idle(ctx, 2))
		_, err := start(ctx, pods[0], assignment.DefaultKey).Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		before := w.owner(ctx).Annotations
		refused(ctx, pods[1], other, assignment.DefaultKey)
		sees := "--annotation-key=" + other
		says := HaveField("Stderr", ContainSubstring("another annotation key is in use"))
		Expect(w.verify(ctx, sees)).To(And(HaveField("Code", 1), says))
		Expect(w.idalloc(ctx, "", "gc", w.ref.String(), "-n", w.Name, sees)).To(And(HaveField("Code", 1), says))
		Expect(w.idalloc(ctx, "", "get", w.ref.String(), "-n", w.Name, sees)).To(And(HaveField("Code", 0), says))
		Expect(w.owner(ctx).Annotations).To(Equal(before))

		By("changing the key as the error says")
		Expect(w.Scale(ctx, store.Deployment, "worker", 0)).To(Succeed())
		w.somePods(ctx, 0)
		Expect(w.idalloc(ctx, "", "gc", "Deployment/worker", "-n", w.Name, "--annotation-key="+assignment.DefaultKey)).To(HaveField("Code", 0))
		Expect(w.Scale(ctx, store.Deployment, "worker", 2)).To(Succeed())
		pods = podNames(w.somePods(ctx, 2))
		_, err = start(ctx, pods[0], other).Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		refused(ctx, pods[1], assignment.DefaultKey, other)
	})
})
