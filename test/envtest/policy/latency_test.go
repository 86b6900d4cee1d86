package policy

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	// writesPerRound is how many writes are timed with the policy, and as many without it.
	writesPerRound = 40
	// entries is the size of the written map.
	entries = 100
)

// roundsFlag is how often the policy is taken away and comes back. What else the machine does hits both sides.
var roundsFlag = flag.Int("rounds", 3, "how many rounds to measure the policy's cost") //nolint:gochecknoglobals // a flag

// write sends one request.
type write func(context.Context) error

// ownerWrite writes a whole map, as a marked account.
func (w *workload) ownerWrite(by actor) write {
	return func(ctx context.Context) error {
		state := assignment.State{Slots: assignment.Slots{}, Handover: assignment.Slots{0: fmt.Sprintf("worker-%d", time.Now().UnixNano())}}
		for id := range entries {
			state.Slots[id] = fmt.Sprintf("worker-6dc99c5c6-%05d", id)
		}
		patch := annotations(state.Encode())
		_, err := by.dynamic.Resource(w.ref.GVR()).Namespace(w.Name).Patch(ctx, w.ref.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: assignment.FieldManager})
		return err
	}
}

// statusWrite writes a pod's status, as kubelets do all the time, whom the policy does not concern.
func (w *workload) statusWrite(pod string) write {
	return func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"status":{"message":"%d"}}`, time.Now().UnixNano())
		_, err := env.Client.CoreV1().Pods(w.Name).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}
}

// cost is what a side's writes took: each by the clock, and all of them of the API server's processors.
type cost struct {
	took []time.Duration
	cpu  float64
}

func (c cost) median() time.Duration { return slices.Sorted(slices.Values(c.took))[len(c.took)/2] }

func (c cost) cpuOfOne() time.Duration {
	return time.Duration(c.cpu / float64(len(c.took)) * float64(time.Second)).Round(time.Microsecond)
}

// add times one round.
func (c *cost) add(ctx context.Context, send write) {
	GinkgoHelper()
	before := cpuSeconds(ctx)
	for range writesPerRound {
		began := time.Now()
		Expect(send(ctx)).To(Succeed())
		c.took = append(c.took, time.Since(began))
	}
	c.cpu += cpuSeconds(ctx) - before
}

// cpuSeconds returns how much processor time the API server has used.
func cpuSeconds(ctx context.Context) float64 {
	GinkgoHelper()
	body, err := env.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(body)) {
		if value, found := strings.CutPrefix(line, "process_cpu_seconds_total "); found {
			seconds, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			Expect(err).NotTo(HaveOccurred())
			return seconds
		}
	}
	Fail("the API server does not say how much processor time it has used")
	return 0
}

var _ = Describe("the policy's cost", Serial, func() {
	It("is measured for writes to the owner, and for those of others", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		// A pod beside the workload: the workload has no pods that write to it.
		Expect(w.Create(ctx, suite.Pod("beside", suite.PodSpec(idle())))).To(Succeed())
		pod := somePods(ctx, w.Namespace, "beside", 1)[0]
		marked := in(ctx, &pod)
		bindings := env.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		writes := map[string]write{"owner, by its pod": w.ownerWrite(marked), "pod status, by another account": w.statusWrite(pod.Name)}
		with, without := map[string]*cost{}, map[string]*cost{}
		for name, send := range writes {
			with[name], without[name] = &cost{}, &cost{}
			(&cost{}).add(ctx, send) // opens the connection
		}
		for range *roundsFlag {
			for name, send := range writes {
				with[name].add(ctx, send)
			}
			Expect(bindings.Delete(ctx, "idalloc", metav1.DeleteOptions{})).To(Succeed())
			marked.free(ctx, w.ref.GVR(), w.ref.Name)
			for name, send := range writes {
				without[name].add(ctx, send)
			}
			Expect(suite.Install(ctx, env.Client, binding)).To(Succeed())
			marked.limited(ctx, w.ref.GVR(), w.ref.Name)
		}
		for name := range writes {
			a, b := with[name], without[name]
			AddReportEntry(name, fmt.Sprintf("%d writes: median %v with the policy and %v without, %.2f times; the API server's CPU time for one: %v and %v",
				len(a.took), a.median(), b.median(), float64(a.median())/float64(b.median()), a.cpuOfOne(), b.cpuOfOne()))
		}
	})
})
