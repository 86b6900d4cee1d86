package allocation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/test/overlap"
)

// parts is one pod's function for partitions, which idalloc.RunPartitions calls in this process.
type parts struct {
	w   *workload
	pod string

	mu sync.Mutex
	// on are the calls that run, by partition; begun counts the calls of each.
	on     map[int]idalloc.Partition
	begun  map[int]int
	causes map[int]error
}

// works runs idalloc.RunPartitions for a pod.
func (w *workload) works(ctx context.Context, pod string, change ...change) *parts {
	GinkgoHelper()
	return w.worksBy(ctx, pod, w.options(ctx, pod, change...))
}

// worksBy runs idalloc.RunPartitions for a pod with these options.
func (w *workload) worksBy(ctx context.Context, pod string, o idalloc.Options) *parts {
	GinkgoHelper()
	p := &parts{w: w, pod: pod, on: map[int]idalloc.Partition{}, begun: map[int]int{}, causes: map[int]error{}}
	ended := make(chan struct{})
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(ended)
		_ = idalloc.RunPartitions(running, o, p.do) // what it works on is what counts
	}()
	DeferCleanup(func() {
		cancel()
		<-ended
	})
	return p
}

// do works on one partition. It logs so in a file of this partition and pod, for the overlap check at the end of the spec.
func (p *parts) do(ctx context.Context, part idalloc.Partition) error {
	defer GinkgoRecover()
	log := p.w.probeLog(p.pod+"#"+strconv.Itoa(part.Number), "")
	p.begin(part)
	shows := func() (int, int, int64) { return part.Number, part.Count, part.Token }
	Expect(log.Sample(shows)).To(Succeed())
	<-ctx.Done()
	Expect(errors.Join(log.Sample(shows), log.Sample(overlap.Nothing), log.Close())).To(Succeed())
	p.finish(part.Number, context.Cause(ctx))
	return ctx.Err()
}

func (p *parts) begin(part idalloc.Partition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, twice := p.on[part.Number]
	Expect(twice).To(BeFalse(), "two calls for partition %d of pod %s", part.Number, p.pod)
	p.on[part.Number] = part
	p.begun[part.Number]++
}

func (p *parts) finish(number int, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.on, number)
	p.causes[number] = cause
}

// now returns the partitions of the calls that run.
func (p *parts) now() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.on))
}

// calls returns how often the work on the partition has begun.
func (p *parts) calls(number int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun[number]
}

func (p *parts) cause(number int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.causes[number]
}

// numbers returns the partitions that a program with a loop of its own owns.
func numbers(m *idalloc.Instance) []int {
	owned := m.Owned()
	all := make([]int, 0, len(owned))
	for _, p := range owned {
		all = append(all, p.Number)
	}
	return all
}
