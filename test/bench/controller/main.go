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
	flag.BoolVar(&b.admission, "admission", false, "measure only how long the creation of a pod takes without, by policy and by webhook")
	flag.BoolVar(&b.observes, "observe", false, "measure the memory of kubectl idalloc observe once all pods have ids, too")
	flag.DurationVar(&b.changes, "changes", 0, "for how long to change the count of one Deployment ten times a second")
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
	floor                bool
	admission, observes  bool
	rest, changes        time.Duration

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
	if b.program, err = program.Build(ctx, cp.Dir(), "controller", "idalloc-controller"); err != nil {
		return err
	}
	if b.admission {
		return b.measureAdmission(ctx)
	}
	var took, floor costs
	for n := range b.rounds {
		if b.floor {
			if err := b.measureFloor(ctx, fmt.Sprintf("floor-%d", n), &floor); err != nil {
				return err
			}
		}
		if err := b.measureController(ctx, fmt.Sprintf("controller-%d", n), &took); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(b.out, "%d pods of %d Deployments: %v\n", b.pods, b.owners, took)
	if b.floor {
		_, _ = fmt.Fprintf(b.out, "floor, two patches a pod: %v; the controller takes %.2f times as long, and %.2f times the CPU\n", floor,
			median(took.wall).Seconds()/median(floor.wall).Seconds(), median(took.cpu).Seconds()/median(floor.cpu).Seconds())
	}
	return nil
}

// costs are what some runs took.
type costs struct{ wall, cpu []time.Duration }

// since adds a run that began then.
func (c *costs) since(begin time.Time, cpu time.Duration) {
	c.wall, c.cpu = append(c.wall, time.Since(begin).Round(time.Millisecond)), append(c.cpu, spent()-cpu)
}

func (c costs) String() string {
	return fmt.Sprintf("%v, median %v; of all programs' CPU %v", c.wall, median(c.wall), median(c.cpu))
}

// measureFloor measures how long two patches a pod take.
func (b *bench) measureFloor(ctx context.Context, ns string, floor *costs) error {
	if _, err := b.gated(ctx, ns); err != nil {
		return err
	}
	begin, cpu := time.Now(), spent()
	if err := twoPatches(ctx, b.client, ns); err != nil {
		return err
	}
	floor.since(begin, cpu)
	return b.remove(ctx, ns)
}

// measureController measures how long a controller takes from its start until no pod waits.
func (b *bench) measureController(ctx context.Context, ns string, took *costs) error {
	made, err := b.gated(ctx, ns)
	if err != nil {
		return err
	}
	begin, cpu := time.Now(), spent()
	c, err := b.start(ctx, ns)
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := c.gave(ctx, b.pods); err != nil {
		return err
	}
	took.since(begin, cpu)
	if err := b.until(ctx, ns, 0); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.out, "%s: Deployments made the pods in %v, the controller gave the ids in %v\n", ns, made.Round(time.Millisecond), took.wall[len(took.wall)-1])
	if err := c.tell(ctx, b.rest); err != nil {
		return err
	}
	if b.observes {
		if err := b.measureObserver(ctx, ns); err != nil {
			return err
		}
	}
	if b.changes > 0 {
		if err := b.measureChanges(ctx, ns, c); err != nil {
			return err
		}
	}
	c.Stop()
	return b.remove(ctx, ns)
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2].Round(time.Millisecond)
}
