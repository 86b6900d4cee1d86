//go:build e2e

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/test/overlap"
	"github.com/idalloc/idalloc/test/report/history"
)

// The flags of hack/chaos; without a duration there is no chaos.
var (
	chaosDuration = flag.Duration("chaos.duration", 0, "how long to break things; 0: not at all")                           //nolint:gochecknoglobals // a flag
	chaosSeed     = flag.Uint64("chaos.seed", 1, "the same seed draws the same faults")                                     //nolint:gochecknoglobals // a flag
	chaosRun      = flag.String("chaos.run", "", "the directory, empty or not there yet, that gets what make report reads") //nolint:gochecknoglobals // a flag
)

const (
	// chaosReplicas is what each workload has at the begin and at the end.
	chaosReplicas = 4
	// withWatcher is the workload with an idalloc container, the watcher.
	withWatcher = "sidecar"
	// chaosFence is the strict workload's fence-after: long enough for a machine that is busy.
	chaosFence = "6s"
	// betweenFaults is the mean time from one fault to the next; they last up to longestFault.
	betweenFaults = 1500 * time.Millisecond
	longestFault  = 9 * time.Second
	// atOnce is how many faults there are at a time.
	atOnce = 6
	// checkEvery is how often the logs are compared during the run.
	checkEvery = time.Minute
	// settling is what the workloads get to settle once nothing is broken any more. A container that was
	// killed twice is started again only after 20 s, and a slot that nobody gave back is in quarantine.
	settling = 5 * time.Minute
)

// chaos breaks things around a few workloads.
type chaos struct {
	cluster
	history   *history.Writer
	proxies   *toxiproxy
	workloads []*victim
	// control is held by a fault of the control plane or the kubelet: one at a time, because what ends one
	// waits until all its parts work.
	control chan struct{}

	mu sync.Mutex
	// skipped counts, by kind, the faults that could not be injected.
	skipped map[string]int
}

// victim is a workload, with what is done to it only.
type victim struct {
	*workload
	label string
	// strict: an id is safe even if a pod is force-deleted while its node runs it.
	strict bool
	// old are annotations that the Deployment had.
	mu  sync.Mutex
	old map[string]string
}

// draw is what the seed decided about one fault.
type draw struct {
	fault
	after, lasts time.Duration
	on           *victim
	// pick chooses a pod, a number or a part.
	pick int
}

var _ = Describe("Chaos", Label("chaos"), Serial, func() {
	if *chaosDuration == 0 {
		return
	}
	It("leaves every id with one holder at a time, and settles", func(ctx SpecContext) {
		c := newChaos(ctx)
		summary := history.Summary{
			Title: fmt.Sprintf("Chaos on a real cluster for %s", *chaosDuration), Seed: strconv.FormatUint(*chaosSeed, 10), Histories: int64(len(c.workloads)),
			Notes: []string{fmt.Sprintf("Repeat it with: CHAOS_DURATION=%s CHAOS_SEED=%d hack/chaos", *chaosDuration, *chaosSeed)},
		}
		DeferCleanup(func() {
			if CurrentSpecReport().Failed() {
				summary.Notes = append(summary.Notes, "The run failed; the suite's output says why.")
			}
			Expect(c.history.Close(summary)).To(Succeed())
		})
		c.start(ctx)
		c.breakThings(ctx)
		c.mend(ctx)
		begin := time.Now()
		c.settle(ctx)
		summary.Notes = append(summary.Notes, fmt.Sprintf("All workloads settled within %s after the last fault.", time.Since(begin).Round(time.Second)))
		reportf("faults that could not be injected", "%v", c.skipped)
	}, SpecTimeout(*chaosDuration+3*patience+settling))
})

func newChaos(ctx context.Context) *chaos {
	GinkgoHelper()
	Expect(*chaosRun).NotTo(BeEmpty(), "set -chaos.run to a directory, as hack/chaos does")
	w, err := history.Create(*chaosRun)
	Expect(err).NotTo(HaveOccurred())
	c := &chaos{cluster: breakable(), history: w, proxies: startToxiproxy(ctx), control: make(chan struct{}, 1), skipped: map[string]int{}}
	DeferCleanup(c.mend, NodeTimeout(patience)) // whatever happened
	c.add(ctx, "default", linked)
	c.add(ctx, "strict", linked, env("FENCE_AFTER", chaosFence)).strict = true
	c.add(ctx, withWatcher, sidecar, rolling("0", "1"))
	return c
}

// add prepares a workload behind a proxy of its own, which logs into the run.
func (c *chaos) add(ctx context.Context, label string, e example, changes ...change) *victim {
	GinkgoHelper()
	v := &victim{workload: prepare(ctx, e, chaosReplicas, append(changes, lingers, c.proxies.between(ctx, label))...), label: label}
	var err error
	v.probes, err = c.history.Workload(label)
	Expect(err).NotTo(HaveOccurred())
	for i, volume := range v.manifest.deployment.Spec.Template.Spec.Volumes {
		if volume.Name == "probe" {
			v.manifest.deployment.Spec.Template.Spec.Volumes[i].HostPath.Path = v.probes
		}
	}
	c.workloads = append(c.workloads, v)
	return v
}

// lingers lets the work go on for a while in a pod that is Terminating. Whoever takes it for dead gives its
// id away too early.
func lingers(s *appsv1.DeploymentSpec) {
	const seconds = 2
	for i := range s.Template.Spec.Containers {
		s.Template.Spec.Containers[i].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}}
	}
}

func (c *chaos) start(ctx context.Context) {
	GinkgoHelper()
	for _, v := range c.workloads {
		v.apply(ctx)
	}
	for _, v := range c.workloads {
		v.held(ctx, chaosReplicas)
		deploy, err := v.deployment(ctx)
		Expect(err).NotTo(HaveOccurred())
		v.old = deploy.Annotations
	}
}

// draws returns all faults of the run. They depend on the seed only; what they hit, on the cluster.
func (c *chaos) draws() []draw {
	random := rand.New(rand.NewPCG(*chaosSeed, 0)) //nolint:gosec // it has to be repeatable
	faults := c.faults()
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	var all []draw
	for at := time.Duration(0); at < *chaosDuration; at += all[len(all)-1].after {
		d := draw{
			after: time.Duration(random.Float64() * float64(2*betweenFaults)), lasts: 200*time.Millisecond + time.Duration(random.Float64()*float64(longestFault)),
			on: c.workloads[random.IntN(len(c.workloads))], pick: random.IntN(1 << 20),
		}
		n := random.IntN(total)
		d.fault = faults[slices.IndexFunc(faults, func(f fault) bool {
			n -= f.weight
			return n < 0
		})]
		if i := slices.IndexFunc(c.workloads, func(v *victim) bool { return v.label == d.only }); i >= 0 {
			d.on = c.workloads[i]
		}
		all = append(all, d)
	}
	return all
}

// breakThings injects the faults, and ends when the last one is over or two pods were seen with one id.
func (c *chaos) breakThings(ctx context.Context) {
	GinkgoHelper()
	end := time.Now().Add(*chaosDuration)
	next := time.NewTimer(0)
	defer next.Stop()
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, atOnce)
	for _, d := range c.draws() {
		for wait := true; wait; {
			select {
			case <-ctx.Done():
				return
			case <-check.C:
				c.noOverlap()
			case <-next.C:
				wait = false
			}
		}
		if time.Now().After(end) {
			return
		}
		next.Reset(d.after)
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		running.Go(func() {
			defer GinkgoRecover()
			defer func() { <-places }()
			c.inject(ctx, d)
		})
	}
}

// errNothing means that a fault finds nothing to break now.
var errNothing = errors.New("nothing to break")

// inject makes one fault, waits as long as it lasts, and ends it.
func (c *chaos) inject(ctx context.Context, d draw) {
	const patience = 10 * time.Second
	begin, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f := history.Fault{At: overlap.Now(), Kind: d.kind}
	if !d.everywhere {
		f.Workload = d.on.label
	}
	what, undo, err := d.do(begin, d)
	if err != nil {
		GinkgoWriter.Printf("%s: %s %s: %v\n", time.Now().Format(time.TimeOnly), d.kind, f.Workload, err)
		c.mu.Lock()
		c.skipped[d.kind]++
		c.mu.Unlock()
		return
	}
	f.What = what
	if undo != nil {
		timer := time.NewTimer(d.lasts)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		Expect(undo(context.WithoutCancel(ctx))).To(Succeed(), "ending %s %s", d.kind, what)
		f.Until = overlap.Now()
	}
	GinkgoWriter.Printf("%s: %s %s %s\n", time.Now().Format(time.TimeOnly), d.kind, f.Workload, what)
	Expect(c.history.Fault(f)).To(Succeed())
}

// noOverlap compares the logs of each workload so far.
func (c *chaos) noOverlap() {
	GinkgoHelper()
	for _, v := range c.workloads {
		v.expectNoOverlap()
	}
}

// mend brings back all that a fault may have left broken.
func (c *chaos) mend(ctx SpecContext) {
	GinkgoHelper()
	Expect(c.proxies.reset(ctx)).To(Succeed())
	c.cluster.start(ctx)
}

// settle waits until every workload is what it was at the begin.
func (c *chaos) settle(ctx context.Context) {
	GinkgoHelper()
	SetDefaultEventuallyTimeout(settling)
	DeferCleanup(SetDefaultEventuallyTimeout, patience)
	for _, v := range c.workloads {
		v.scale(ctx, strconv.Itoa(chaosReplicas))
	}
	for _, v := range c.workloads {
		By("settling " + v.label)
		v.held(ctx, chaosReplicas)
	}
	for _, v := range c.workloads {
		v.verify(ctx)
	}
	c.noOverlap()
}
