package allocation

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var _ = Describe("when the API server goes away", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	It("holders keep their ids, say that they are stale, and go on when it is back", Serial, func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 3, w.podSpec()))).To(Succeed())
		before := w.settled(ctx, 3)
		pods := map[int]corev1.Pod{}
		for id, name := range before {
			pods[id] = *w.pod(ctx, name)
		}
		env.ControlPlane.KillAPIServer()
		for id, pod := range pods {
			Eventually(func() (string, error) { return w.staleHeader(ctx, pod) }).WithContext(ctx).Should(Equal("true"))
			Expect(w.identity(ctx, pod)).To(HaveField("ID", id))
		}
		Expect(env.ControlPlane.StartAPIServer(ctx)).To(Succeed())
		Expect(w.settled(ctx, 3)).To(Equal(before))
		Expect(w.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		after := w.settled(ctx, 5)
		for id, name := range before {
			Expect(after).To(HaveKeyWithValue(id, name))
			Expect(restarts(w.pod(ctx, name), "idalloc")).To(BeZero(), "an outage is no reason to restart")
		}
	})

	It("claimers go on where they were when it is back", Serial, func(ctx SpecContext) {
		Expect(w.Create(ctx, suite.Deployment("worker", 10, w.podSpec()))).To(Succeed())
		Eventually(func() ([]corev1.Pod, error) { return w.Pods(ctx, "worker") }).WithContext(ctx).Should(HaveLen(10))
		env.ControlPlane.KillAPIServer()
		Expect(env.ControlPlane.StartAPIServer(ctx)).To(Succeed())
		w.settled(ctx, 10)
	})

	It("a release goes through when it is back", Serial, func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0]
		i := w.instance(ctx, pod.Name)
		Expect(i.Wait(ctx)).To(HaveField("ID", 0))
		env.ControlPlane.KillAPIServer()
		closed := make(chan error, 1)
		go func() { closed <- i.Close(ctx) }()
		Eventually(i.Current).WithContext(ctx).Should(HaveField("State", identity.StateReleased))
		Expect(env.ControlPlane.StartAPIServer(ctx)).To(Succeed())
		Eventually(closed).WithContext(ctx).Should(Receive(BeNil()))
		Expect(w.assignment(ctx)).To(BeEmpty())
	})
})

var _ = Describe("on a bad network", func() {
	It("a watch that is cut in the middle loses no news", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		pods := w.idle(ctx, 2)
		wire := newLink()
		i := w.instance(ctx, pods[0].Name, wire.options)
		Expect(i.Wait(ctx)).To(HaveField("Count", 2))
		wire.cut(true)
		Expect(w.Scale(ctx, store.Deployment, "worker", 7)).To(Succeed())
		wire.cut(false)
		Eventually(i.Current).WithContext(ctx).Should(HaveField("Count", 7))
		wire.cut(false)
		Expect(w.Scale(ctx, store.Deployment, "worker", 9)).To(Succeed())
		Eventually(i.Current).WithContext(ctx).Should(HaveField("Count", 9))
		Expect(i.Current().Assigned()).To(BeTrue())
	})

	It("connections that break at every moment of many claims harm nobody", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		pods := w.idle(ctx, 6)
		wire := newLink()
		cutting, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		var requests atomic.Int64
		wg.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			last := int64(0)
			for ; cutting.Err() == nil; <-tick.C { // cuts after every few requests, whatever they are
				if n := requests.Load(); n >= last+7 {
					last = n
					wire.cut(false)
				}
			}
		})
		instances := make([]*idcontext.Instance, 0, len(pods))
		for _, pod := range pods {
			instances = append(instances, w.instance(ctx, pod.Name, wire.options, counting(&requests)))
		}
		held := map[int]bool{}
		for n, i := range instances {
			if n == len(instances)/2 {
				stop() // the second half gets through
			}
			id, err := i.Wait(ctx)
			Expect(err).NotTo(HaveOccurred())
			held[id.ID] = true
		}
		Expect(slices.Sorted(maps.Keys(held))).To(Equal(ids(6)))
	})
})

var _ = Describe("many claims", func() {
	It("get through beside somebody who writes to the owner all the time", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		pods := w.idle(ctx, 10)
		writing, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			defer GinkgoRecover()
			for n := 0; ; n++ {
				begun := time.Now()
				w.annotate(ctx, map[string]any{"example.com/counter": strconv.Itoa(n)})
				// Where all requests are slow, a claim needs more time between two writes, too.
				pause := time.NewTimer(max(50*time.Millisecond, 10*time.Since(begun)))
				select {
				case <-pause.C:
				case <-writing.Done():
					pause.Stop()
					return
				}
			}
		})
		defer wg.Wait()
		defer stop()
		held := map[int]bool{}
		for _, pod := range pods {
			id, err := w.instance(ctx, pod.Name).Wait(ctx)
			Expect(err).NotTo(HaveOccurred())
			held[id.ID] = true
		}
		Expect(held).To(HaveLen(10))
	})
})

// staleHeader asks a pod's watcher whether it has contact.
func (w *workload) staleHeader(ctx context.Context, pod corev1.Pod) (string, error) {
	resp, err := w.get(ctx, pod)
	if err != nil {
		return "", err
	}
	return resp.Header.Get("Idalloc-Stale"), resp.Body.Close()
}
