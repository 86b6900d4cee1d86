// Bench measures idalloc-controller on a control plane of its own: how long many gated pods wait for their ids beside two patches a pod, the
// controller's memory, and what it sends at rest. There is no node, so no pod runs.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/idalloc/idalloc/test/bench/program"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

func main() {
	b := bench{out: os.Stdout}
	flag.IntVar(&b.pods, "pods", 1000, "how many pods to measure with")
	flag.IntVar(&b.owners, "owners", 1, "how many Deployments they are of")
	flag.IntVar(&b.rounds, "rounds", 3, "how often to measure, by turns with the floor")
	flag.BoolVar(&b.floor, "floor", true, "measure two patches a pod and nothing else, too")
	flag.BoolVar(&b.sets, "statefulsets", false, "measure how long as many StatefulSets take to make as many pods")
	flag.DurationVar(&b.rest, "rest", 0, "for how long to count the requests of a controller that has nothing to do")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is what is to be measured, and where.
type bench struct {
	pods, owners, rounds int
	floor, sets          bool
	rest                 time.Duration

	out                 io.Writer
	client              kubernetes.Interface
	program, kubeconfig string
}

func (b *bench) run(ctx context.Context) (err error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer cp.Stop() //nolint:errcheck // it removes a temporary folder
	config := cp.Config()
	config.QPS = -1
	if b.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if b.kubeconfig, err = cp.Kubeconfig(controlplane.Admin); err != nil {
		return err
	}
	if b.program, err = program.Build(ctx, cp.Dir()); err != nil {
		return err
	}
	var took, floor []time.Duration
	for n := range b.rounds {
		if b.floor {
			d, err := b.measureFloor(ctx, fmt.Sprintf("floor-%d", n))
			if err != nil {
				return err
			}
			floor = append(floor, d)
		}
		d, err := b.measureController(ctx, fmt.Sprintf("controller-%d", n))
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	_, _ = fmt.Fprintf(b.out, "%d pods of %d Deployments: %v, median %v\n", b.pods, b.owners, took, median(took))
	if b.floor {
		_, _ = fmt.Fprintf(b.out, "floor, two patches a pod: %v, median %v; the controller takes %.2f times as long\n", floor, median(floor), median(took).Seconds()/median(floor).Seconds())
	}
	if b.sets {
		return b.measureSets(ctx, "sets")
	}
	return nil
}

// measureFloor returns how long two patches a pod take.
func (b *bench) measureFloor(ctx context.Context, ns string) (time.Duration, error) {
	if _, err := b.gated(ctx, ns); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := twoPatches(ctx, b.client, ns); err != nil {
		return 0, err
	}
	return time.Since(begin), b.remove(ctx, ns)
}

// measureController returns how long a controller takes from its start until no pod waits.
func (b *bench) measureController(ctx context.Context, ns string) (time.Duration, error) {
	made, err := b.gated(ctx, ns)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	c, err := b.start(ctx, ns)
	if err != nil {
		return 0, err
	}
	defer c.Stop()
	if err := c.gave(ctx, b.pods); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if err := b.until(ctx, ns, 0); err != nil {
		return 0, err
	}
	_, _ = fmt.Fprintf(b.out, "%s: Deployments made the pods in %v, the controller gave the ids in %v\n", ns, made.Round(time.Millisecond), took.Round(time.Millisecond))
	if err := c.tell(ctx, b.rest); err != nil {
		return 0, err
	}
	c.Stop()
	return took, b.remove(ctx, ns)
}

// measureSets tells how long StatefulSets, which number their pods themselves, take to make the pods.
func (b *bench) measureSets(ctx context.Context, ns string) error {
	begin := time.Now()
	if err := b.create(ctx, ns, b.statefulSet); err != nil {
		return err
	}
	if err := b.until(ctx, ns, b.pods); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.out, "%d StatefulSets with the policy Parallel made %d pods in %v\n", b.owners, b.pods, time.Since(begin).Round(time.Millisecond))
	return nil
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2].Round(time.Millisecond)
}
