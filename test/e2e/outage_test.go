//go:build e2e

package e2e

import (
	"context"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/idalloc/idalloc/test/overlap"
)

var _ = Describe("In an outage", Serial, func() {
	It("of API server and etcd a rollout waits, and completes afterwards", func(ctx SpecContext) {
		c := breakable()
		w, before := startLinked(ctx, 4)
		w.restart(ctx)
		Eventually(func(g Gomega, ctx context.Context) {
			_, held := w.others(ctx, g, before)
			g.Expect(held).NotTo(BeEmpty(), "ids of the new revision")
		}).WithContext(ctx).WithPolling(10 * time.Millisecond).Should(Succeed())
		since := overlap.Now()
		DeferCleanup(c.start)
		c.signal(syscall.SIGKILL, "apiserver", "etcd")
		c.start(ctx)
		w.held(ctx, 4)
		reportf("longest time without a holder per id, API server and etcd killed during the rollout", "%s", describeAbsences(absences(w.records(since))))
	}, SpecTimeout(2*patience))

	// The node stops answering while its containers run on, and somebody force-deletes two pods: one whose
	// network is broken, one that is suspended. Pods that wait for a slot run already: those of a new
	// revision, of which only one gets a slot as long as it is not available.
	DescribeTable("of a node whose pods are force-deleted", func(ctx SpecContext, fenceAfter string) {
		c := breakable()
		w, before := startLinked(ctx, 3, strictly(fenceAfter), rolling("100%", "0"), func(s *appsv1.DeploymentSpec) { s.MinReadySeconds = 300 })
		w.overlaps = fenceAfter == ""
		w.restart(ctx)
		Eventually(func(g Gomega, ctx context.Context) {
			pods, held := w.others(ctx, g, before)
			g.Expect(pods).To(HaveLen(3))
			for _, p := range pods {
				g.Expect(p.Status.ContainerStatuses).To(HaveLen(1))
				g.Expect(p.Status.ContainerStatuses[0].State.Running).NotTo(BeNil())
			}
			g.Expect(held).To(HaveLen(1))
		}).WithContext(ctx).Should(Succeed())

		// The replacements of the deleted pods could not start: they shall not get the slots.
		Expect(w.kubectl(ctx, "create", "quota", "full", "--hard=pods=1")).Error().NotTo(HaveOccurred())
		resumeKubelet := c.stopKubelet("kubelet")
		// The API server remembers for ten seconds that it accepted a token, and then does not accept that of a pod that is gone.
		Consistently(func(g Gomega) {
			for id := range 2 {
				last, err := w.lastSample(before[id])
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(last.ID).To(Equal(id))
			}
		}).WithContext(ctx).WithTimeout(15 * time.Second).Should(Succeed())
		mend, resume := w.cutOff(ctx, before[0]), suspend(before[1])
		for id := range 2 {
			Expect(w.kubectl(ctx, "delete", "pod", before[id], "--force", "--grace-period=0")).Error().NotTo(HaveOccurred())
		}
		begin := time.Now()
		Eventually(func(g Gomega, ctx context.Context) {
			_, held := w.others(ctx, g, before)
			g.Expect(held).To(HaveLen(3))
			for id, pod := range held {
				last, err := w.lastSample(pod)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(last.ID).To(Equal(id))
			}
		}).WithContext(ctx).Should(Succeed())
		reportf("time until the ids had new holders", "%s", time.Since(begin).Round(100*time.Millisecond))

		By("letting the suspended process, the network and the kubelet go on")
		resume()
		mend()
		for id := range 2 {
			w.silent(ctx, before[id])
		}
		resumeKubelet()
		w.verify(ctx)
		records, err := overlap.Read(w.probes)
		Expect(err).NotTo(HaveOccurred())
		_, err = overlap.Check(records)
		reportf("overlaps", "%v", err)
		if !w.overlaps {
			Expect(err).NotTo(HaveOccurred())
		}
	},
		Entry("keeps no two holders apart by default", "", SpecTimeout(2*patience)),
		Entry("has no overlap in strict mode", "3s", SpecTimeout(2*patience)),
	)
})

// silent waits until a pod that is gone works under no id any more: its last sample shows none.
func (w *workload) silent(ctx context.Context, pod string) {
	GinkgoHelper()
	Eventually(func() (int, error) {
		last, err := w.lastSample(pod)
		return last.ID, err
	}).WithContext(ctx).Should(Equal(overlap.None))
}
