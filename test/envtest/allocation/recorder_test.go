package allocation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
)

// recorder follows instances in this process: every identity that they publish, and what Current says every few
// milliseconds. When the spec ends it fails if two instances were assigned with one id at one moment, if the epoch of
// an id did not grow from one holder to the next, or if one that an instance showed fell.
type recorder struct {
	mu        sync.Mutex
	instances map[string]*idcontext.Instance
	news      map[string][]identity.Identity // what Changes delivered
	epochs    map[string]int64               // the newest that each instance showed
	last      map[int]identity.Identity      // who was last seen with an id
	violated  []string

	ended   chan struct{}
	running sync.WaitGroup
}

func newRecorder() *recorder {
	r := &recorder{
		instances: map[string]*idcontext.Instance{}, news: map[string][]identity.Identity{}, epochs: map[string]int64{},
		last: map[int]identity.Identity{}, ended: make(chan struct{}),
	}
	r.running.Go(r.sample)
	DeferCleanup(func() {
		close(r.ended)
		r.running.Wait()
		if CurrentSpecReport().Failed() {
			for name, news := range r.news {
				GinkgoWriter.Printf("%s published %v\n", name, news)
			}
		}
		Expect(r.violated).To(BeEmpty())
	})
	return r
}

// follow begins to record an instance. The recorder is the only one to receive its Changes.
func (r *recorder) follow(i *idcontext.Instance) *idcontext.Instance {
	name := i.Current().Pod
	r.mu.Lock()
	r.instances[name] = i
	r.mu.Unlock()
	r.running.Go(func() {
		for {
			select {
			case id, open := <-i.Changes():
				if !open {
					return
				}
				r.mu.Lock()
				r.news[name] = append(r.news[name], id)
				r.shown(id)
				r.mu.Unlock()
			case <-r.ended:
				return
			}
		}
	})
	return i
}

// sample looks at all instances again and again.
func (r *recorder) sample() {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		r.look()
		select {
		case <-tick.C:
		case <-r.ended:
			return
		}
	}
}

// look asks everybody twice: who says the same before and after all others were asked said it in between.
func (r *recorder) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := make(map[string]identity.Identity, len(r.instances))
	for name, i := range r.instances {
		before[name] = i.Current()
	}
	held := map[int]identity.Identity{}
	for name, i := range r.instances {
		id := i.Current()
		if !id.Assigned() || id.ID != before[name].ID || id.Epoch != before[name].Epoch {
			continue
		}
		if other, twice := held[id.ID]; twice {
			r.violatef("%s and %s were both assigned %d, with epochs %d and %d", other.Pod, id.Pod, id.ID, other.Epoch, id.Epoch)
		}
		held[id.ID] = id
	}
	for n, id := range held {
		if was, ok := r.last[n]; ok && was.Pod != id.Pod && id.Epoch <= was.Epoch {
			r.violatef("id %d went from %s to %s and its epoch from %d to %d", n, was.Pod, id.Pod, was.Epoch, id.Epoch)
		}
		r.last[n] = id
		r.shown(id)
	}
}

func (r *recorder) shown(id identity.Identity) {
	if !id.Assigned() {
		return
	}
	if id.Epoch < r.epochs[id.Pod] {
		r.violatef("the epoch of %s fell from %d to %d", id.Pod, r.epochs[id.Pod], id.Epoch)
	}
	r.epochs[id.Pod] = max(r.epochs[id.Pod], id.Epoch)
}

func (r *recorder) violatef(format string, args ...any) {
	if what := fmt.Sprintf(format, args...); !slices.Contains(r.violated, what) {
		r.violated = append(r.violated, what)
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

// start starts pkg/context for a pod in the test process, records it, and closes it when the spec ends.
func (r *recorder) start(ctx context.Context, w *workload, pod string, change ...change) *idcontext.Instance {
	GinkgoHelper()
	return r.follow(w.instance(ctx, pod, change...))
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

// restored waits until the map is clean and says exactly what these pods hold.
func (w *workload) restored(ctx context.Context, holders map[string]identity.Identity) {
	GinkgoHelper()
	want := assignment.Slots{}
	for name, id := range holders {
		want[id.ID] = name
	}
	Eventually(func(g Gomega) {
		owner := w.owner(ctx)
		g.Expect(owner.Clean()).To(BeTrue(), "the map is clean")
		g.Expect(owner.Record.State.Slots).To(Equal(want))
		for _, id := range holders {
			g.Expect(owner.Record.State.Epoch).To(BeNumerically(">=", id.Epoch))
		}
	}).WithContext(ctx).Should(Succeed())
}

// names returns the names of the pods that hold.
func names(holders map[string]identity.Identity) []string { return slices.Sorted(maps.Keys(holders)) }

// waitingFor returns what an instance without an id says that it waits for.
func waitingFor(ctx context.Context, i *idcontext.Instance) string {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := i.Wait(ctx)
	if err == nil {
		return ""
	}
	_, text, _ := strings.Cut(err.Error(), "waited for ")
	return text
}
