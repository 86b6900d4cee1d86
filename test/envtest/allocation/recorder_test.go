package allocation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/overlap"
)

// recorder follows instances in this process. It keeps every identity that they publish, and logs what they show, as
// programs do, for the overlap check at the end of the spec.
type recorder struct {
	*workload
	instances map[string]*idalloc.Instance

	mu   sync.Mutex
	news map[string][]identity.Identity // what Changes delivered

	ended   chan struct{}
	running sync.WaitGroup
}

// newRecorder returns one that records until the spec ends. Then it fails if a token that an instance showed fell.
func newRecorder(w *workload) *recorder {
	r := &recorder{workload: w, instances: map[string]*idalloc.Instance{}, news: map[string][]identity.Identity{}, ended: make(chan struct{})}
	DeferCleanup(func() {
		close(r.ended)
		r.running.Wait()
		for name, news := range r.news {
			if CurrentSpecReport().Failed() {
				GinkgoWriter.Printf("%s published %v\n", name, news)
			}
			held := slices.DeleteFunc(news, func(id identity.Identity) bool { return !id.Assigned() })
			Expect(slices.IsSortedFunc(held, func(a, b identity.Identity) int { return cmp.Compare(a.Token, b.Token) })).To(BeTrue(), "a token fell: %v", held)
		}
	})
	return r
}

// follow begins to record an instance of the pod with this UID. The recorder is the only one to receive its Changes.
func (r *recorder) follow(i *idalloc.Instance, uid types.UID) *idalloc.Instance {
	GinkgoHelper()
	name := i.Current().Pod
	r.instances[name] = i
	log := r.probeLog(name, string(uid))
	r.running.Go(func() {
		defer GinkgoRecover()
		Expect(errors.Join(log.Until(r.ended, showing(i)), log.Close())).To(Succeed())
	})
	r.running.Go(func() {
		for {
			select {
			case id, open := <-i.Changes():
				if !open {
					return
				}
				r.mu.Lock()
				r.news[name] = append(r.news[name], id)
				r.mu.Unlock()
			case <-r.ended:
				return
			}
		}
	})
	return i
}

// showing is what an instance shows at the moment.
func showing(i *idalloc.Instance) func() (id, count int, token int64) {
	return func() (int, int, int64) {
		id := i.Current()
		if !id.Assigned() {
			return overlap.Nothing()
		}
		return id.ID, id.Count, id.Token
	}
}

// mark returns how much each instance has published, for undisturbed.
func (r *recorder) mark() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := map[string]int{}
	for name, news := range r.news {
		at[name] = len(news)
	}
	return at
}

// since returns what an instance has published since mark.
func (r *recorder) since(at map[string]int, pod string) []identity.Identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.news[pod][min(at[pod], len(r.news[pod])):])
}

// undisturbed checks that since mark these holders published nothing but changes of the count.
func (r *recorder) undisturbed(at map[string]int, holders map[string]identity.Identity) {
	GinkgoHelper()
	for name, id := range holders {
		for _, news := range append(r.since(at, name), r.instances[name].Current()) {
			news.Count = id.Count
			Expect(news).To(Equal(id), "the work of a holder was interrupted: %v", r.since(at, name))
		}
	}
}

// start starts an instance for a pod in the test process, records it, and closes it when the spec ends.
func (r *recorder) start(ctx context.Context, pod string, change ...change) *idalloc.Instance {
	GinkgoHelper()
	return r.follow(r.instance(ctx, pod, change...), r.pod(ctx, pod).UID)
}

// assigned waits for the ids of all these pods.
func (r *recorder) assigned(ctx context.Context, pods ...string) map[string]identity.Identity {
	GinkgoHelper()
	got := map[string]identity.Identity{}
	for _, name := range pods {
		id, err := r.instances[name].Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		got[name] = id
	}
	held := map[int]bool{}
	for _, id := range got {
		held[id.ID] = true
	}
	Expect(held).To(HaveLen(len(pods)), "ids: %v", got)
	r.caughtUp(ctx, got)
	return got
}

// caughtUp waits until the recorder has the news that these pods hold these ids, and returns mark.
func (r *recorder) caughtUp(ctx context.Context, holders map[string]identity.Identity) map[string]int {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for name, id := range holders {
			news := r.since(nil, name)
			g.Expect(news).NotTo(BeEmpty())
			g.Expect(news[len(news)-1]).To(HaveField("ID", id.ID))
		}
	}).WithContext(ctx).Should(Succeed())
	return r.mark()
}

// restored waits until the map can be read and says exactly what these pods hold.
func (w *workload) restored(ctx context.Context, holders map[string]identity.Identity) {
	GinkgoHelper()
	want := assignment.Slots{}
	for name, id := range holders {
		want[id.ID] = name
	}
	Eventually(func(g Gomega) {
		owner := w.owner(ctx)
		g.Expect(owner.Record.Problems).To(BeEmpty())
		g.Expect(owner.Record.State.Slots).To(Equal(want))
	}).WithContext(ctx).Should(Succeed())
}
