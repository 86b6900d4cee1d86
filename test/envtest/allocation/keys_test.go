package allocation

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
)

var _ = Describe("two annotation keys", func() {
	const other = "example.com/ids"
	var (
		w          *workload
		fenceAfter time.Duration
	)

	start := func(ctx context.Context, pod, key string) *idcontext.Instance {
		GinkgoHelper()
		i, err := idcontext.Start(ctx, w.options(ctx, pod, func(o *idcontext.Options) { o.AnnotationKey, o.FenceAfter = key, fenceAfter }))
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

	BeforeEach(func(ctx SpecContext) {
		w, fenceAfter = newWorkload(ctx, store.Deployment), 0
	})

	It("do not keep each other waiting in strict mode while no pod has an id", func(ctx SpecContext) {
		fenceAfter = 3 * time.Second
		pods := podNames(w.idle(ctx, 2))
		w.annotateAs(ctx, "somebody", map[string]any{assignment.EpochKey: "1"}) // all slots are in quarantine from the first restore on
		a, b := start(ctx, pods[0], assignment.DefaultKey), start(ctx, pods[1], other)
		got := make(chan error, 2)
		for _, i := range []*idcontext.Instance{a, b} {
			go func() {
				_, err := i.Wait(ctx)
				got <- err
			}()
		}
		first, second := <-got, <-got
		if first != nil {
			first, second = second, first
		}
		Expect(first).NotTo(HaveOccurred())
		Expect(second).To(MatchError(store.ErrOtherKey))
	})

	It("are refused, until one has let go", func(ctx SpecContext) {
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

	It("do not make a holder write over the other's assignment", func(ctx SpecContext) {
		pods := w.idle(ctx, 2)
		holder := start(ctx, pods[0].Name, assignment.DefaultKey)
		held, err := holder.Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		state := assignment.State{Slots: assignment.Slots{}, UIDs: assignment.Slots{}, Epoch: held.Epoch + 1}
		for id, pod := range pods {
			state.Slots[id], state.UIDs[id] = pod.Name, assignment.ShortUID(string(pod.UID))
		}
		theirs := map[string]any{}
		for key, value := range state.Encode(other, string(w.owner(ctx).UID)) {
			theirs[key] = value
		}
		w.annotateAs(ctx, assignment.FieldManager, theirs)
		refused(ctx, pods[1].Name, assignment.DefaultKey, other)
		Expect(w.Scale(ctx, store.Deployment, "worker", 3)).To(Succeed())
		Eventually(holder.Current).WithContext(ctx).Should(And(HaveField("ID", held.ID), HaveField("Count", 3)), "the holder keeps its id")
		Expect(holder.Close(ctx)).To(MatchError(store.ErrOtherKey))
		for key, value := range theirs {
			Expect(w.owner(ctx).Annotations).To(HaveKeyWithValue(key, value))
		}
	})
})
