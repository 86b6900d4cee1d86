//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/overlap"
)

var _ = Describe("A foreign write", Ordered, ContinueOnFailure, func() {
	const n = 5
	var (
		w *workload
		// old are the annotations from before the first replacement of a pod.
		old map[string]string
	)

	BeforeAll(func(ctx SpecContext) {
		w, _ = startLinked(ctx, n)
		deploy, err := w.deployment(ctx)
		Expect(err).NotTo(HaveOccurred())
		old = deploy.Annotations
	}, NodeTimeout(patience))

	AfterEach(func(ctx SpecContext) { w.check(ctx) })

	// unharmed does it while the pod with the highest id is replaced: the others work on, and the new
	// pod gets no id of theirs.
	unharmed := func(ctx context.Context, clean bool, write func()) {
		GinkgoHelper()
		stay := w.held(ctx, n)
		leaves := stay[n-1]
		delete(stay, n-1)
		since := overlap.Now()
		Expect(w.kubectl(ctx, "delete", "pod", leaves, "--wait=false")).Error().NotTo(HaveOccurred())
		write()
		w.restored(ctx, stay, clean)
		after := w.held(ctx, n)
		expectKept(stay, after)
		Expect(after[n-1]).NotTo(Equal(leaves))
		w.expectUninterrupted(stay, since)
	}
	annotate := func(ctx context.Context, pairs ...string) func() {
		return func() {
			GinkgoHelper()
			Expect(w.kubectl(ctx, append([]string{"annotate", "--overwrite", "deployment", name}, pairs...)...)).Error().NotTo(HaveOccurred())
		}
	}

	It("by kubectl replace, with a manifest that lacks the annotations, is repaired", func(ctx SpecContext) {
		manifest, err := json.Marshal(w.manifest.deployment)
		Expect(err).NotTo(HaveOccurred())
		unharmed(ctx, true, func() {
			Expect(w.kubectlIn(ctx, string(manifest), "replace", "-f", "-")).Error().NotTo(HaveOccurred())
		})
	}, SpecTimeout(patience))

	It("that removes the assignment is repaired", func(ctx SpecContext) {
		unharmed(ctx, true, annotate(ctx, assignment.DefaultKey+"-"))
	}, SpecTimeout(patience))

	It("that gives every id to other pods is repaired", func(ctx SpecContext) {
		h := w.held(ctx, n)
		swapped := assignment.Slots{0: h[1], 1: h[0], 2: "nobody", 3: h[n-1]}
		unharmed(ctx, true, annotate(ctx, assignment.DefaultKey+"="+swapped.Encode()))
	}, SpecTimeout(patience))

	It("that brings an older state back is repaired", func(ctx SpecContext) {
		unharmed(ctx, true, annotate(ctx,
			assignment.DefaultKey+"="+old[assignment.DefaultKey], assignment.EpochKey+"="+old[assignment.EpochKey], assignment.SealKey+"="+old[assignment.SealKey]))
	}, SpecTimeout(patience))

	It("that copies a pod with its receipt gives the copy no id", func(ctx SpecContext) {
		h := w.held(ctx, n)
		since := overlap.Now()
		Expect(w.kubectl(ctx, "debug", h[2], "--copy-to=copy", "--keep-annotations",
			"--image="+image, "--container=debugger", "--image-pull-policy=Never", "--", "/idalloc", "version")).Error().NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(w.kubectl(ctx, "delete", "pod", "copy", "--grace-period=1")).Error().NotTo(HaveOccurred())
		})
		// It is copied without the workload's labels: the ReplicaSet would adopt it, and end one that is too many.
		Expect(w.kubectl(ctx, "label", "pod", "copy", idLabel+"=2")).Error().NotTo(HaveOccurred())
		By("waiting until the program in the copy has ended, because the copy belongs to no Deployment")
		Eventually(func(ctx context.Context) (corev1.Pod, error) {
			p, err := client.CoreV1().Pods(w.namespace).Get(ctx, "copy", metav1.GetOptions{})
			return *p, err
		}).WithContext(ctx).Should(Satisfy(crashed))
		Expect(w.records(since)).NotTo(ContainElement(And(HaveField("Pod", "copy"), HaveField("ID", Not(Equal(overlap.None))))))
		w.verify(ctx)
		w.restored(ctx, h, true)
		w.expectUninterrupted(h, since)
	}, SpecTimeout(patience))

	It("that clears managedFields leaves everything working", func(ctx SpecContext) {
		unharmed(ctx, false, func() {
			Expect(w.kubectl(ctx, "patch", "deployment", name, "--type=json", "-p", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)).Error().NotTo(HaveOccurred())
		})
	}, SpecTimeout(patience))
})

var _ = Describe("Of twelve pods", Ordered, func() {
	var w *workload

	BeforeAll(func(ctx SpecContext) {
		w = prepare(ctx, linked, 10, keepsWorking, rolling("25%", "0"))
		w.stale = true
		w.apply(ctx)
	}, NodeTimeout(patience))

	AfterEach(func(ctx SpecContext) { w.check(ctx) })

	It("ten keep their ids through an undo and a simultaneous scale-up", func(ctx SpecContext) {
		first := w.held(ctx, 10)
		By("beginning a revision that cannot start, and replacing a pod: the old revision's copy of the assignment is out of date now")
		Expect(w.kubectl(ctx, "set", "image", "deployment", name, name+"=docker.io/idalloc/absent:1")).Error().NotTo(HaveOccurred())
		Eventually(func(g Gomega, ctx context.Context) {
			pods, _ := w.others(ctx, g, first)
			g.Expect(pods).To(ContainElement(Satisfy(imageless)))
		}).WithContext(ctx).Should(Succeed())
		Expect(w.kubectl(ctx, "delete", "pod", first[3])).Error().NotTo(HaveOccurred())
		now := holders{}
		Eventually(func(g Gomega, ctx context.Context) {
			now = w.assignment(ctx, g)
			g.Expect(now).To(HaveLen(10))
			g.Expect(now[3]).NotTo(Equal(first[3]))
			last, err := w.lastSample(now[3])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(last.ID).To(Equal(3))
		}).WithContext(ctx).Should(Succeed())

		By("undoing it, and scaling up")
		since := overlap.Now()
		var scaling sync.WaitGroup
		scaling.Go(func() {
			defer GinkgoRecover()
			w.scale(ctx, "12")
		})
		w.undo(ctx)
		w.restored(ctx, now, true)
		scaling.Wait()
		expectKept(now, w.held(ctx, 12))
		w.expectUninterrupted(now, since)
	}, SpecTimeout(2*patience))

	It("the highest ids end first when it is scaled to ten and to six", func(ctx SpecContext) {
		h := w.held(ctx, 12)
		since := overlap.Now()
		for _, n := range []int{10, 6} {
			w.scale(ctx, strconv.Itoa(n))
			for id := range h {
				if id >= n {
					delete(h, id)
				}
			}
			Expect(w.held(ctx, n)).To(Equal(h))
		}
		w.expectUninterrupted(h, since)
	}, SpecTimeout(2*patience))
})

// restored waits until the assignment is trusted again and gives these pods their ids, and reports how
// long that took. With clean false nobody can trust it any more, and only the ids count.
func (w *workload) restored(ctx context.Context, h holders, clean bool) {
	GinkgoHelper()
	begin := time.Now()
	Eventually(func(g Gomega, ctx context.Context) {
		owner, err := w.owner(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(owner.Clean()).To(Equal(clean))
		for id, pod := range h {
			g.Expect(owner.Record.State.Slots).To(HaveKeyWithValue(id, pod))
		}
	}).WithContext(ctx).WithPolling(5 * time.Millisecond).Should(Succeed())
	reportf("time until the assignment was restored", "%s after the command", time.Since(begin).Round(time.Millisecond))
}
