package allocation

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
)

var _ = Describe("damage by others", func() {
	It("a rollout undo while pods start", func(ctx SpecContext) {
		v := holding(ctx, 4)
		v.copied(ctx)
		v.stall(ctx)
		waiter := v.stalled(ctx, 1)[0]
		v.start(ctx, waiter.Name)
		By("moving on from the map that the old ReplicaSet has a copy of")
		v.annotate(ctx, map[string]any{assignment.SealKey: nil})
		v.unharmed(ctx)
		moved := v.owner(ctx).Record.State.Epoch
		By("undoing and scaling up in one moment")
		v.undo(ctx)
		Expect(v.Scale(ctx, store.Deployment, "worker", 6)).To(Succeed())
		v.newcomers(ctx, 6)
		v.unharmed(ctx)
		Expect(v.owner(ctx).Record.State.Epoch).To(BeNumerically(">", moved))
		Expect(slices.Sorted(maps.Keys(v.assignment(ctx)))).To(Equal(ids(6)))
	})

	It("kubectl replace with a manifest that lacks the annotations, while pods start", func(ctx SpecContext) {
		v := holding(ctx, 3)
		v.replace(ctx)
		Expect(v.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		v.newcomers(ctx, 5)
		v.unharmed(ctx)
		v.replace(ctx)
		v.unharmed(ctx)
	})

	It("every key removed alone, and set to another value alone", func(ctx SpecContext) {
		v := holding(ctx, 3)
		for _, key := range []string{assignment.DefaultKey, assignment.EpochKey, assignment.SealKey} {
			By("removing " + key)
			v.annotate(ctx, map[string]any{key: nil})
			v.unharmed(ctx)
		}
		id, name := 0, names(v.holders)[2]
		for _, set := range [][2]string{
			{assignment.DefaultKey, `{}`},
			{assignment.EpochKey, "1"},
			{assignment.HandoverKey, fmt.Sprintf(`{"%d":%q}`, id, name)},
			{assignment.UIDsKey, `{"0":"somebody"}`},
			{assignment.QuarantineKey, `{"5":"0-"}`},
		} {
			key, value := set[0], set[1]
			By("setting " + key)
			v.annotate(ctx, map[string]any{key: value})
			v.unharmed(ctx)
			Expect(v.owner(ctx).Annotations).NotTo(HaveKeyWithValue(key, value))
		}
		By("setting " + assignment.FenceAfterKey + ", which is obeyed until nobody can be meant by it")
		v.annotate(ctx, map[string]any{assignment.FenceAfterKey: "30s"})
		v.unharmed(ctx)
	})

	It("a map that names somebody else, who comes to take the slot", func(ctx SpecContext) {
		v := holding(ctx, 3)
		Expect(v.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
		pods := v.somePods(ctx, 4)
		late := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return v.instances[p.Name] == nil })].Name
		old := v.assignment(ctx)
		v.annotate(ctx, map[string]any{assignment.DefaultKey: assignment.Slots{0: late, 1: old[1], 2: old[2]}.Encode()})
		v.newcomers(ctx, 4)
		v.unharmed(ctx)
		Expect(v.holders[late].ID).To(Equal(3))
	})

	It("all keys of an older state that was whole once", func(ctx SpecContext) {
		v := holding(ctx, 3)
		old := v.ours(ctx)
		By("letting another pod have slot 1")
		gone := v.assignment(ctx)[1]
		delete(v.holders, gone)
		Expect(v.instances[gone].Close(ctx)).To(Succeed())
		v.deletePod(ctx, gone)
		v.newcomers(ctx, 3)
		v.unharmed(ctx)
		for range 3 {
			v.annotate(ctx, old)
			v.unharmed(ctx)
		}
	})

	It("managedFields cleared while pods claim, and tracked again by a server-side apply", func(ctx SpecContext) {
		v := holding(ctx, 3)
		Expect(v.Scale(ctx, store.Deployment, "worker", 6)).To(Succeed())
		v.somePods(ctx, 6)
		v.untrack(ctx)
		v.newcomers(ctx, 6, func(o *idcontext.Options) {
			t := &trap{after: writesOwner(o.PodName), before: reads(o.PodName), do: func() {
				defer GinkgoRecover()
				v.untrack(ctx)
			}}
			t.options(o)
		})
		v.undisturbed(v.at, v.holders)
		v.at = v.mark()
		By("removing the map with nobody tracking anything")
		v.untrack(ctx)
		v.wipe(ctx)
		Eventually(func(g Gomega) {
			for name, id := range v.holders {
				g.Expect(v.assignment(ctx)).To(HaveKeyWithValue(id.ID, name))
			}
		}).WithContext(ctx).Should(Succeed())
		v.undisturbed(v.at, v.holders)
		By("a server-side apply, which begins to track")
		v.untrack(ctx)
		v.apply(ctx)
		v.unharmed(ctx)
	})

	It("everything again and again while pods start", func(ctx SpecContext) {
		v := holding(ctx, 4)
		back := v.ours(ctx)
		Expect(v.Scale(ctx, store.Deployment, "worker", 8)).To(Succeed())
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			defer GinkgoRecover()
			for range 8 {
				v.wipe(ctx)
				v.annotate(ctx, back)
				v.replace(ctx)
				v.untrack(ctx)
				v.annotate(ctx, map[string]any{assignment.DefaultKey: "{}"})
			}
		})
		v.newcomers(ctx, 8)
		wg.Wait()
		By("a server-side apply makes it trackable in any case")
		v.apply(ctx)
		v.unharmed(ctx)
	})

	It("a controller that sets the annotations every 20 ms, beside waiters", func(ctx SpecContext) {
		v := holding(ctx, 3)
		back := v.ours(ctx)
		Expect(v.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		v.somePods(ctx, 5)
		back[assignment.EpochKey] = "1"
		written := v.countWrites(ctx)
		ended := make(chan struct{})
		var writing sync.WaitGroup
		defer writing.Wait()
		writing.Go(func() {
			defer GinkgoRecover()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				v.annotate(ctx, back)
				select {
				case <-tick.C:
				case <-ended:
					return
				}
			}
		})
		for _, pod := range v.somePods(ctx, 5) {
			if v.instances[pod.Name] != nil {
				continue
			}
			waiter := v.start(ctx, pod.Name)
			Eventually(func() string {
				if waiter.Current().Assigned() {
					return "it took the slot in a gap"
				}
				return waitingFor(ctx, waiter)
			}).WithContext(ctx).Should(Or(ContainSubstring(`field manager "kubectl-annotate" (Update)`), HavePrefix("it took")), "a waiter says who is in its way")
		}
		Consistently(written, 10*time.Second, time.Second).Should(BeNumerically("<", 40), "of 500 writes of the other one few are answered")
		close(ended)
		writing.Wait()
		v.newcomers(ctx, 5)
		v.unharmed(ctx)
		changed := map[string]int{}
		for _, e := range v.told(ctx) {
			changed[e.Reason]++
			Expect(e.Message).To(ContainSubstring(`field manager "kubectl-annotate" (Update)`))
		}
		Expect(changed).To(HaveKeyWithValue("AssignmentChanged", BeNumerically("<=", 3)), "one a minute")
		Expect(written()).NotTo(BeZero())
	})

	It("a server-side apply that forces a map of its own", func(ctx SpecContext) {
		v := holding(ctx, 3)
		force := true
		body := fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"worker","annotations":{%q:"{}",%q:%q}}}`,
			assignment.DefaultKey, assignment.SealKey, v.owner(ctx).Annotations[assignment.SealKey])
		_, err := env.Client.AppsV1().Deployments(v.Name).Patch(ctx, "worker", types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "applier", Force: &force})
		Expect(err).NotTo(HaveOccurred())
		v.unharmed(ctx)
	})
})
