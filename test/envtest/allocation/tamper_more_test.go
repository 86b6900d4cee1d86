package allocation

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// sleepers makes a Deployment whose pods do nothing and are Ready at once.
func (w *workload) sleepers(ctx context.Context, n int, s strategy) []corev1.Pod {
	GinkgoHelper()
	d := suite.Deployment("worker", int32(n), suite.PodSpec(suite.Container("main", "/bin/sleep", "1000"))) //nolint:gosec // small
	s(&d.Spec)
	Expect(w.Create(ctx, d)).To(Succeed())
	return w.somePods(ctx, n)
}

// stall begins a revision whose pods never get Ready.
func (w *workload) stall(ctx context.Context) {
	GinkgoHelper()
	_, err := env.Client.AppsV1().Deployments(w.Name).Patch(ctx, "worker", types.JSONPatchType,
		[]byte(`[{"op":"add","path":"/spec/template/spec/containers/0/readinessProbe","value":{"exec":{"command":["/bin/false"]}}}]`),
		metav1.PatchOptions{FieldManager: "kubectl-edit"})
	Expect(err).NotTo(HaveOccurred())
}

// stalled waits for n pods, not Terminating, of a revision that stall began.
func (w *workload) stalled(ctx context.Context, n int) []corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	Eventually(func(g Gomega) {
		all, err := w.Pods(ctx, "worker")
		g.Expect(err).NotTo(HaveOccurred())
		pods = slices.DeleteFunc(all, func(p corev1.Pod) bool {
			return p.Spec.Containers[0].ReadinessProbe == nil || p.DeletionTimestamp != nil
		})
		g.Expect(pods).To(HaveLen(n))
	}).WithContext(ctx).Should(Succeed())
	return pods
}

// copied waits until the ReplicaSet of the first revision has a copy of the owner's map.
func (w *workload) copied(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		sets, err := env.Client.AppsV1().ReplicaSets(w.Name).List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(sets.Items).To(HaveLen(1))
		g.Expect(sets.Items[0].Annotations).To(HaveKeyWithValue(assignment.SealKey, w.owner(ctx).Annotations[assignment.SealKey]))
	}).WithContext(ctx).Should(Succeed())
}

// replace does what kubectl replace does with a manifest that knows nothing of idalloc.
func (w *workload) replace(ctx context.Context) {
	GinkgoHelper()
	deployments := env.Client.AppsV1().Deployments(w.Name)
	d, err := deployments.Get(ctx, "worker", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	manifest := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace}, Spec: d.Spec}
	_, err = deployments.Update(ctx, manifest, metav1.UpdateOptions{FieldManager: "kubectl-replace"})
	Expect(err).NotTo(HaveOccurred())
}

// wipe removes every annotation of ours.
func (w *workload) wipe(ctx context.Context) {
	GinkgoHelper()
	gone := map[string]any{}
	for _, key := range assignment.Keys(assignment.DefaultKey) {
		gone[key] = nil
	}
	w.annotate(ctx, gone)
}

// untrack clears managedFields.
func (w *workload) untrack(ctx context.Context) {
	GinkgoHelper()
	_, err := env.Client.AppsV1().Deployments(w.Name).Patch(ctx, "worker", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("damage by others", func() {
	var (
		w       *workload
		rec     *recorder
		holders map[string]identity.Identity
		at      map[string]int
	)
	setup := func(ctx SpecContext, n int) {
		GinkgoHelper()
		w = newWorkload(ctx, store.Deployment)
		rec = newRecorder(w)
		pods := w.sleepers(ctx, n, rolling("1", "0"))
		all := make([]string, 0, n)
		for _, pod := range pods {
			rec.start(ctx, pod.Name)
			all = append(all, pod.Name)
		}
		holders = rec.assigned(ctx, all...)
		at = rec.mark()
	}
	unharmed := func(ctx context.Context) {
		GinkgoHelper()
		w.restored(ctx, holders)
		rec.undisturbed(at, holders)
	}
	// newcomers starts an instance for each live pod that is not stalled and has none, until n pods have an id.
	newcomers := func(ctx context.Context, n int, change ...change) {
		GinkgoHelper()
		now := maps.Clone(holders)
		Eventually(func(g Gomega) {
			pods, err := w.Pods(ctx, "worker")
			g.Expect(err).NotTo(HaveOccurred())
			for _, p := range pods {
				if p.DeletionTimestamp != nil || p.Spec.Containers[0].ReadinessProbe != nil {
					continue
				}
				if _, known := rec.instances[p.Name]; !known {
					rec.start(ctx, p.Name, change...)
				}
				now[p.Name] = rec.instances[p.Name].Current()
			}
			g.Expect(now).To(HaveLen(n))
			for _, id := range now {
				g.Expect(id.Assigned()).To(BeTrue())
			}
		}).WithContext(ctx).Should(Succeed())
		marks := rec.caughtUp(ctx, now)
		for name := range now {
			if _, known := holders[name]; !known {
				at[name] = marks[name]
			}
		}
		holders = now
	}

	It("a rollout undo while pods start", func(ctx SpecContext) {
		setup(ctx, 4)
		w.copied(ctx)
		w.stall(ctx)
		waiter := w.stalled(ctx, 1)[0]
		rec.start(ctx, waiter.Name)
		By("moving on from the map that the old ReplicaSet has a copy of")
		w.annotate(ctx, map[string]any{assignment.SealKey: nil})
		unharmed(ctx)
		moved := w.owner(ctx).Record.State.Epoch
		By("undoing and scaling up in one moment")
		w.undo(ctx)
		Expect(w.Scale(ctx, store.Deployment, "worker", 6)).To(Succeed())
		newcomers(ctx, 6)
		unharmed(ctx)
		Expect(w.owner(ctx).Record.State.Epoch).To(BeNumerically(">", moved))
		Expect(slices.Sorted(maps.Keys(w.assignment(ctx)))).To(Equal(ids(6)))
	})

	It("kubectl replace with a manifest that lacks the annotations, while pods start", func(ctx SpecContext) {
		setup(ctx, 3)
		w.replace(ctx)
		Expect(w.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		newcomers(ctx, 5)
		unharmed(ctx)
		w.replace(ctx)
		unharmed(ctx)
	})

	It("every key removed alone, and set to another value alone", func(ctx SpecContext) {
		setup(ctx, 3)
		for _, key := range []string{assignment.DefaultKey, assignment.EpochKey, assignment.SealKey} {
			By("removing " + key)
			w.annotate(ctx, map[string]any{key: nil})
			unharmed(ctx)
		}
		id, name := 0, names(holders)[2]
		for _, set := range [][2]string{
			{assignment.DefaultKey, `{}`},
			{assignment.EpochKey, "1"},
			{assignment.HandoverKey, fmt.Sprintf(`{"%d":%q}`, id, name)},
			{assignment.UIDsKey, `{"0":"somebody"}`},
			{assignment.QuarantineKey, `{"5":"0-"}`},
		} {
			key, value := set[0], set[1]
			By("setting " + key)
			w.annotate(ctx, map[string]any{key: value})
			unharmed(ctx)
			Expect(w.owner(ctx).Annotations).NotTo(HaveKeyWithValue(key, value))
		}
		By("setting " + assignment.FenceAfterKey + ", which is obeyed until nobody can be meant by it")
		w.annotate(ctx, map[string]any{assignment.FenceAfterKey: "30s"})
		unharmed(ctx)
	})

	It("a map that names somebody else, who comes to take the slot", func(ctx SpecContext) {
		setup(ctx, 3)
		Expect(w.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
		pods := w.somePods(ctx, 4)
		late := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return rec.instances[p.Name] == nil })].Name
		old := w.assignment(ctx)
		w.annotate(ctx, map[string]any{assignment.DefaultKey: assignment.Slots{0: late, 1: old[1], 2: old[2]}.Encode()})
		newcomers(ctx, 4)
		unharmed(ctx)
		Expect(holders[late].ID).To(Equal(3))
	})

	It("all keys of an older state that was whole once", func(ctx SpecContext) {
		setup(ctx, 3)
		old := w.owner(ctx).Annotations
		By("letting another pod have slot 1")
		gone := w.assignment(ctx)[1]
		delete(holders, gone)
		Expect(rec.instances[gone].Close(ctx)).To(Succeed())
		w.deletePod(ctx, gone)
		newcomers(ctx, 3)
		unharmed(ctx)
		values := map[string]any{}
		for _, key := range assignment.Keys(assignment.DefaultKey) {
			if value, ok := old[key]; ok {
				values[key] = value
			}
		}
		for range 3 {
			w.annotate(ctx, values)
			unharmed(ctx)
		}
	})

	It("a wipe after another pod's receipt for a held slot arrived late, with a newer epoch", func(ctx SpecContext) {
		setup(ctx, 1)
		Expect(w.Scale(ctx, store.Deployment, "worker", 2)).To(Succeed())
		pods := w.somePods(ctx, 2)
		late := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return rec.instances[p.Name] == nil })]
		receipt := assignment.Receipt{UID: string(late.UID), Owner: w.ref.String(), ID: 0, Epoch: w.owner(ctx).Record.State.Epoch + 60_000}
		w.patchPod(ctx, late.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q},"labels":{%q:"0"}}}`,
			assignment.ReceiptKey, receipt.Encode(), assignment.InstanceIDLabel))
		w.wipe(ctx)
		Eventually(func(g Gomega) {
			owner := w.owner(ctx)
			g.Expect(owner.Clean()).To(BeTrue())
			g.Expect(owner.Record.State.Slots).NotTo(HaveKeyWithValue(0, late.Name), "the slot's holder acts under it")
		}).WithContext(ctx).Should(Succeed())
		rec.undisturbed(at, holders)
		By("letting the late one run: it withdraws, and the holder is written in again")
		newcomers(ctx, 2)
		unharmed(ctx)
		Expect(holders[late.Name].ID).To(Equal(1))
	})

	DescribeTable("a wipe in the middle of a claim",
		func(ctx SpecContext, after, before func(pod string) func(*http.Request) bool) {
			setup(ctx, 3)
			Expect(w.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
			w.somePods(ctx, 4)
			var epoch atomic.Int64
			newcomers(ctx, 4, func(o *idcontext.Options) {
				t := &trap{after: after(o.PodName), before: before(o.PodName)}
				t.do = func() {
					defer GinkgoRecover()
					epoch.Store(w.owner(ctx).Record.State.Epoch)
					w.wipe(ctx)
				}
				t.options(o)
			})
			Expect(epoch.Load()).NotTo(BeZero(), "the trap did not spring")
			unharmed(ctx)
			for _, id := range holders {
				if id.ID == 3 {
					Expect(id.Epoch).To(BeNumerically(">", epoch.Load()), "it acts on what it read before the wipe")
				}
			}
		},
		Entry("between its look and its lists", reads, lists),
		Entry("between its lists and its write", lists, writesOwner),
		Entry("between its write and its receipt", writesOwner, writesReceipt),
		Entry("between its receipt and its second look", writesReceipt, reads),
	)

	It("all receipts removed at once", func(ctx SpecContext) {
		setup(ctx, 5)
		var wg sync.WaitGroup
		for name := range holders {
			wg.Go(func() {
				defer GinkgoRecover()
				w.patchPod(ctx, name, `{"metadata":{"annotations":{"idalloc.dev/receipt":null},"labels":{"idalloc.dev/instance-id":null}}}`)
			})
		}
		wg.Wait()
		w.receipts(ctx, holders)
		for name, id := range rec.assigned(ctx, names(holders)...) {
			Expect(id.ID).To(Equal(holders[name].ID))
			Expect(id.Epoch).To(BeNumerically(">=", holders[name].Epoch))
		}
		w.restored(ctx, holders)
	})

	It("a receipt that was set to another pod's slot", func(ctx SpecContext) {
		setup(ctx, 3)
		thief, victim := w.assignment(ctx)[0], w.assignment(ctx)[1]
		forged := assignment.Receipt{
			UID: string(w.pod(ctx, thief).UID), Owner: "Deployment/worker", ID: 1, Epoch: time.Now().Add(time.Minute).UnixMilli(),
		}
		w.patchPod(ctx, thief, fmt.Sprintf(`{"metadata":{"annotations":{"idalloc.dev/receipt":%q},"labels":{"idalloc.dev/instance-id":"1"}}}`, forged.Encode()))
		w.receipts(ctx, holders)
		w.restored(ctx, holders)
		for name, id := range rec.assigned(ctx, names(holders)...) {
			Expect(id.ID).To(Equal(holders[name].ID))
		}
		delete(holders, thief) // it had to take its slot again
		rec.undisturbed(at, map[string]identity.Identity{victim: holders[victim]})
	})

	DescribeTable("a copied pod", func(ctx SpecContext, change func(*corev1.Pod)) {
		setup(ctx, 3)
		original := w.assignment(ctx)[1]
		pod := w.pod(ctx, original)
		twin := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: original + "-debug", Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences},
			Spec:       *suite.PodSpec(suite.Container("main", "/bin/sleep", "1000")),
		}
		// So that it stays when the ReplicaSet ends one pod too many. That is the copy, which no node may run.
		twin.Finalizers = []string{"test.idalloc.dev/stays"}
		twin.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "test.idalloc.dev/never"}}
		change(twin)
		Expect(w.Create(ctx, twin)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { w.patchPod(ctx, twin.Name, `{"metadata":{"finalizers":null}}`) })
		copied, err := idcontext.Start(ctx, w.options(ctx, twin.Name))
		if err == nil {
			DeferCleanup(copied.Close)
			rec.follow(copied)
			Eventually(func() *metav1.Time { return w.pod(ctx, twin.Name).DeletionTimestamp }).WithContext(ctx).ShouldNot(BeNil(), "the ReplicaSet has a pod too many")
		}
		By("planning with the copy there")
		w.wipe(ctx)
		unharmed(ctx)
		By("letting the original go: its slot is free although the copy lives")
		delete(holders, original)
		Expect(rec.instances[original].Close(ctx)).To(Succeed())
		w.deletePod(ctx, original)
		newcomers(ctx, 3)
		unharmed(ctx)
		if copied != nil {
			Expect(copied.Current().Assigned()).To(BeFalse())
		}
	},
		Entry("with its labels and annotations, without ownerReferences", func(p *corev1.Pod) {
			p.OwnerReferences = nil
			delete(p.Labels, "app")
			delete(p.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		}),
		Entry("with everything", func(*corev1.Pod) {}),
	)

	It("managedFields cleared while pods claim, and tracked again by a server-side apply", func(ctx SpecContext) {
		setup(ctx, 3)
		Expect(w.Scale(ctx, store.Deployment, "worker", 6)).To(Succeed())
		w.somePods(ctx, 6)
		w.untrack(ctx)
		newcomers(ctx, 6, func(o *idcontext.Options) {
			t := &trap{after: writesOwner(o.PodName), before: reads(o.PodName), do: func() {
				defer GinkgoRecover()
				w.untrack(ctx)
			}}
			t.options(o)
		})
		rec.undisturbed(at, holders)
		at = rec.mark()
		By("removing the map with nobody tracking anything")
		w.untrack(ctx)
		w.wipe(ctx)
		Eventually(func(g Gomega) {
			for name, id := range holders {
				g.Expect(w.assignment(ctx)).To(HaveKeyWithValue(id.ID, name))
			}
		}).WithContext(ctx).Should(Succeed())
		rec.undisturbed(at, holders)
		By("a server-side apply, which begins to track")
		w.untrack(ctx)
		_, err := env.Client.AppsV1().Deployments(w.Name).Patch(ctx, "worker", types.ApplyPatchType,
			[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"worker","annotations":{"example.com/applied":"yes"}}}`),
			metav1.PatchOptions{FieldManager: "applier"})
		Expect(err).NotTo(HaveOccurred())
		unharmed(ctx)
	})

	It("everything again and again while pods start", func(ctx SpecContext) {
		setup(ctx, 4)
		old := w.owner(ctx).Annotations
		back := map[string]any{}
		for _, key := range assignment.Keys(assignment.DefaultKey) {
			if value, ok := old[key]; ok {
				back[key] = value
			}
		}
		Expect(w.Scale(ctx, store.Deployment, "worker", 8)).To(Succeed())
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			defer GinkgoRecover()
			for range 8 {
				w.wipe(ctx)
				w.annotate(ctx, back)
				w.replace(ctx)
				w.untrack(ctx)
				w.annotate(ctx, map[string]any{assignment.DefaultKey: "{}"})
			}
		})
		newcomers(ctx, 8)
		wg.Wait()
		By("a server-side apply makes it trackable in any case")
		_, err := env.Client.AppsV1().Deployments(w.Name).Patch(ctx, "worker", types.ApplyPatchType,
			[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"worker","annotations":{"example.com/applied":"yes"}}}`),
			metav1.PatchOptions{FieldManager: "applier"})
		Expect(err).NotTo(HaveOccurred())
		unharmed(ctx)
	})

	It("a controller that sets the annotations every 20 ms, beside waiters", func(ctx SpecContext) {
		setup(ctx, 3)
		back := map[string]any{}
		for _, key := range assignment.Keys(assignment.DefaultKey) {
			if value, ok := w.owner(ctx).Annotations[key]; ok {
				back[key] = value
			}
		}
		Expect(w.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		w.somePods(ctx, 5)
		back[assignment.EpochKey] = "1"
		written := w.countWrites(ctx)
		ended := make(chan struct{})
		var writing sync.WaitGroup
		defer writing.Wait()
		writing.Go(func() {
			defer GinkgoRecover()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				w.annotate(ctx, back)
				select {
				case <-tick.C:
				case <-ended:
					return
				}
			}
		})
		for _, pod := range w.somePods(ctx, 5) {
			if rec.instances[pod.Name] == nil {
				rec.start(ctx, pod.Name)
			}
		}
		Consistently(written, 10*time.Second, time.Second).Should(BeNumerically("<", 40), "of 500 writes of the other one few are answered")
		close(ended)
		writing.Wait()
		newcomers(ctx, 5)
		unharmed(ctx)
		changed := map[string]int{}
		for _, e := range w.told(ctx) {
			changed[e.Reason]++
			Expect(e.Message).To(ContainSubstring(`field manager "kubectl-annotate" (Update)`))
		}
		Expect(changed).To(HaveKeyWithValue("AssignmentChanged", BeNumerically("<=", 3)), "one a minute")
		Expect(written()).NotTo(BeZero())
	})

	It("a server-side apply that forces a map of its own", func(ctx SpecContext) {
		setup(ctx, 3)
		force := true
		body := fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"worker","annotations":{%q:"{}",%q:%q}}}`,
			assignment.DefaultKey, assignment.SealKey, w.owner(ctx).Annotations[assignment.SealKey])
		_, err := env.Client.AppsV1().Deployments(w.Name).Patch(ctx, "worker", types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "applier", Force: &force})
		Expect(err).NotTo(HaveOccurred())
		unharmed(ctx)
	})
})

// countWrites follows the owner and returns how often idalloc has written it since.
func (w *workload) countWrites(ctx context.Context) func() int {
	GinkgoHelper()
	var n atomic.Int64
	follow, err := env.Client.AppsV1().Deployments(w.Name).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=worker", ResourceVersion: w.owner(ctx).ResourceVersion})
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		seal := ""
		for event := range follow.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			o := store.Object{ObjectMeta: d.ObjectMeta}
			if now := d.Annotations[assignment.SealKey]; o.Tracked() && now != seal {
				seal = now
				n.Add(1)
			}
		}
	}()
	DeferCleanup(func() {
		follow.Stop()
		<-done
	})
	return func() int { return int(n.Load()) }
}

// receipts waits until these pods' receipts say what they hold.
func (w *workload) receipts(ctx context.Context, holders map[string]identity.Identity) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for name, id := range holders {
			pod := w.pod(ctx, name)
			r, err := assignment.ReceiptOf(pod.Annotations, string(pod.UID), "Deployment/worker", time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r).NotTo(BeNil())
			g.Expect(r.ID).To(Equal(id.ID))
			g.Expect(pod.Labels).To(HaveKeyWithValue(assignment.InstanceIDLabel, strconv.Itoa(id.ID)))
		}
	}).WithContext(ctx).Should(Succeed())
}
