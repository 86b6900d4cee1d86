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
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
)

// The flags of hack/chaos; without a duration there is no chaos.
var (
	chaosDuration = flag.Duration("chaos.duration", 0, "how long to break things; 0: not at all")                         //nolint:gochecknoglobals // a flag
	chaosSeed     = flag.Uint64("chaos.seed", 1, "the same seed draws the same faults")                                   //nolint:gochecknoglobals // a flag
	chaosFaults   = flag.String("chaos.faults", "", "a regular expression of the kinds of faults to draw; empty: all")    //nolint:gochecknoglobals // a flag
	chaosRun      = flag.String("chaos.run", "", "the directory, empty or not there yet, that gets the logs and run.txt") //nolint:gochecknoglobals // a flag
)

const (
	// chaosReplicas is what each workload has at the begin and at the end.
	chaosReplicas = 4
	// chaosPartitions is how many those workloads have that divide some, and chaosStop how long their work takes to stop after it
	// was told to. A watcher that does not wait for that starts other work beside it.
	chaosPartitions = 16
	chaosStop       = "3s"
	// chaosFence is the strict workloads' fence-after: long enough for a machine that is busy.
	chaosFence = "6s"
	// betweenFaults is the mean time from one fault to the next; they last up to longestFault.
	betweenFaults = 1500 * time.Millisecond
	longestFault  = 9 * time.Second
	// shorter is by how much those of control plane and kubelet are, not counting what a start takes.
	shorter = 3
	// often: one in so many of the draws picks the first pod.
	often = 2
	// atOnce is how many faults there are at a time.
	atOnce = 8
	// checks is how often the logs are compared during the run, and more often than every checkEvery not.
	checks     = 6
	checkEvery = time.Minute
	// settling is what the workloads get to settle once nothing is broken any more. A container that was
	// killed twice is started again only after 20 s, and in strict mode the Lease of a pod that is gone lasts for a while.
	settling = 5 * time.Minute
)

// chaos breaks things around a few workloads.
type chaos struct {
	cluster
	history   *history.Writer
	workloads []*victim
	// control is for faults of the control plane or the kubelet: one at a time, because what ends one
	// waits until all its parts work.
	control turn

	mu sync.Mutex
	// injected and leftOut count the faults.
	injected, leftOut int
}

// victim is a workload, with what is done to it only.
type victim struct {
	*workload
	label string
	// strict: an id is safe even if a pod is force-deleted while its node runs it.
	strict bool
	proxy  *toxiproxy

	mu sync.Mutex
	// excused are pods that were force-deleted while their processes may have run on, and since when.
	excused map[string]int64
}

// draw is what the seed decided about one fault.
type draw struct {
	fault
	after, lasts time.Duration
	on           *victim
	// pick chooses a pod; 0, which is drawn often, the first, so that faults meet. number chooses a number.
	pick, number int
}

var _ = Describe("Chaos", Label("chaos"), Serial, func() {
	if *chaosDuration == 0 {
		return
	}
	It("leaves every id with one holder at a time, and settles", func(ctx SpecContext) {
		c := newChaos(ctx)
		summary := history.Summary{
			Title: fmt.Sprintf("Chaos on a real cluster for %s", *chaosDuration),
			Notes: []string{fmt.Sprintf("Repeat it with: CHAOS_DURATION=%s CHAOS_SEED=%d hack/chaos", *chaosDuration, *chaosSeed)},
		}
		DeferCleanup(func() {
			if CurrentSpecReport().Failed() {
				summary.Notes = append(summary.Notes, "The run failed; the suite's output says why.")
			}
			c.judge(&summary)
			Expect(c.history.Close(summary)).To(Succeed())
		})
		DeferCleanup(c.report)
		observed := observe(ctx)
		c.start(ctx)
		c.breakThings(ctx)
		c.mend(ctx)
		begin := time.Now()
		c.settle(ctx)
		settled := fmt.Sprintf("All workloads settled within %s after the last fault.", time.Since(begin).Round(time.Second))
		summary.Notes = append(summary.Notes, settled)
		reportf("settling", "%s", settled)
		c.noOverlap()
		Expect(observed()).To(BeEmpty(), "what kubectl idalloc observe printed: steps that the protocol does not allow")
		c.expectFaults()
	}, SpecTimeout(*chaosDuration+3*patience+settling))
})

func newChaos(ctx context.Context) *chaos {
	GinkgoHelper()
	Expect(*chaosRun).NotTo(BeEmpty(), "set -chaos.run to a directory, as hack/chaos does")
	w, err := history.Create(*chaosRun)
	Expect(err).NotTo(HaveOccurred())
	c := &chaos{cluster: breakable(), history: w, control: make(turn, 1)}
	c.add(ctx, "default", linked)
	c.add(ctx, "strict", linked, strictly).strict = true
	c.add(ctx, "sidecar", sidecar, rolling("0", "1"))
	c.add(ctx, "partitions", partitions, env("STOP_TIME", chaosStop)).divide(chaosPartitions)
	strict := c.add(ctx, "partitions-strict", partitions, env("STOP_TIME", chaosStop), strictly)
	strict.strict = true
	strict.divide(chaosPartitions)
	DeferCleanup(c.mend, NodeTimeout(patience)) // whatever happened
	return c
}

// add prepares a workload behind a proxy of its own, which logs into the run.
func (c *chaos) add(ctx context.Context, label string, e example, changes ...change) *victim {
	GinkgoHelper()
	proxy := startToxiproxy(ctx)
	v := &victim{
		workload: prepare(ctx, e, chaosReplicas, append(changes, lingers, proxy.between)...),
		label:    label, proxy: proxy, excused: map[string]int64{},
	}
	v.overlaps = true // noOverlap knows who is excused
	var err error
	v.probes, err = c.history.Workload(label)
	Expect(err).NotTo(HaveOccurred())
	for i, volume := range v.manifest.deployment.Spec.Template.Spec.Volumes {
		if volume.Name == probeVolume {
			v.manifest.deployment.Spec.Template.Spec.Volumes[i].HostPath.Path = v.probes
		}
	}
	c.workloads = append(c.workloads, v)
	return v
}

// lingers lets the work go on for a while in a pod that is Terminating. A planner that takes it for dead gives its
// id away too early.
func lingers(s *appsv1.DeploymentSpec) {
	const seconds = 4
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
		v.complete(ctx)
	}
}

// complete waits until the workload is what it is without faults.
func (v *victim) complete(ctx context.Context) {
	GinkgoHelper()
	v.held(ctx, chaosReplicas)
	if v.divides > 0 {
		v.divided(ctx, chaosReplicas)
	}
}

// draws returns all faults of the run: each kind once in some order, then more at random. They depend on
// the seed only; what they hit, on the cluster.
func (c *chaos) draws() []draw {
	random := rand.New(rand.NewPCG(*chaosSeed, 0)) //nolint:gosec // it must be repeatable
	faults := c.faults()
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	weighted := func() fault {
		n := random.IntN(total)
		return faults[slices.IndexFunc(faults, func(f fault) bool {
			n -= f.weight
			return n < 0
		})]
	}
	first := deal(random, faults)
	var all []draw
	for at := time.Duration(0); at < *chaosDuration; at += all[len(all)-1].after {
		d := draw{
			after: time.Duration(random.Float64() * float64(2*betweenFaults)), lasts: 200*time.Millisecond + time.Duration(random.Float64()*float64(longestFault)),
			number: random.IntN(1 << 20),
		}
		which := random.IntN(1 << 20)
		d.pick = d.number * random.IntN(often)
		if i := len(all); i < len(first) {
			d.fault = first[i]
		} else {
			d.fault = weighted()
		}
		if d.everywhere { // no other fault happens meanwhile
			d.lasts /= shorter
		}
		on := c.workloads
		if d.only != nil {
			on = slices.DeleteFunc(slices.Clone(on), func(v *victim) bool { return !d.only(v) })
		}
		d.on = on[which%len(on)]
		all = append(all, d)
	}
	return all
}

// deal returns each fault once: those that concern all workloads, which keep others from being
// injected, at even distances among the rest.
func deal(random *rand.Rand, faults []fault) []fault {
	var rest, everywhere, all []fault
	for _, i := range random.Perm(len(faults)) {
		if faults[i].everywhere {
			everywhere = append(everywhere, faults[i])
		} else {
			rest = append(rest, faults[i])
		}
	}
	if len(everywhere) == 0 {
		return rest
	}
	for i, f := range everywhere {
		all = append(all, rest[len(rest)*i/len(everywhere):len(rest)*(i+1)/len(everywhere)]...)
		all = append(all, f)
	}
	return all
}

// breakThings injects the faults, and ends when the last one is over or two pods were seen with one id.
func (c *chaos) breakThings(ctx context.Context) {
	GinkgoHelper()
	end := time.Now().Add(*chaosDuration)
	next := time.NewTimer(0)
	defer next.Stop()
	check := time.NewTicker(min(*chaosDuration/checks, checkEvery))
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
	f := history.Fault{Kind: d.kind}
	if !d.everywhere {
		f.Workload = d.on.label
	}
	undo, err := d.begin(ctx, &f)
	c.count(err == nil)
	if err != nil {
		GinkgoWriter.Printf("%s: %s %s: %v\n", time.Now().Format(time.TimeOnly), d.kind, f.Workload, err)
		return
	}
	if undo != nil {
		timer := time.NewTimer(d.lasts)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		Expect(undo(context.WithoutCancel(ctx))).To(Succeed(), "ending %s %s", d.kind, f.What)
		f.Until = overlap.Now()
	}
	GinkgoWriter.Printf("%s: %s %s %s\n", time.Now().Format(time.TimeOnly), d.kind, f.Workload, f.What)
	c.history.Fault(f)
}

// begin begins a fault, for which it waits a while when there is nothing to break yet.
func (d draw) begin(ctx context.Context, f *history.Fault) (undo func(context.Context) error, err error) {
	const (
		patience = 20 * time.Second
		pause    = 250 * time.Millisecond
	)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		f.At = overlap.Now()
		f.What, undo, err = d.do(ctx, d)
		if err == nil {
			return undo, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-again.C:
		}
	}
}

// mend brings back all that a fault may have left broken. Kubernetes' controllers start afresh: one that missed that a pod came
// and went while the API server was away waits for it for five minutes, and then for whatever event comes next.
func (c *chaos) mend(ctx SpecContext) {
	GinkgoHelper()
	for _, v := range c.workloads {
		Expect(v.proxy.restart(ctx)).To(Succeed())
	}
	c.signal(syscall.SIGKILL, "controller-manager")
	c.cluster.start(ctx)
}

// settle waits until every workload is what it was at the begin.
func (c *chaos) settle(ctx context.Context) {
	GinkgoHelper()
	SetDefaultEventuallyTimeout(settling)
	DeferCleanup(SetDefaultEventuallyTimeout, patience)
	for _, v := range c.workloads {
		v.scale(ctx, strconv.Itoa(chaosReplicas))
		if v.divides > 0 {
			Expect(v.wish(ctx, v.wishes())).Error().NotTo(HaveOccurred())
		}
	}
	for _, v := range c.workloads {
		By("settling " + v.label)
		v.complete(ctx)
	}
	for _, v := range c.workloads {
		v.verify(ctx)
	}
}
