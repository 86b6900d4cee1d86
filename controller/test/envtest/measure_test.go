package envtest

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

//nolint:gochecknoglobals // flags
var (
	many   = flag.Int("gated", 0, "how many gated pods to measure with; 0: leave it out")
	owners = flag.Int("owners", 1, "how many Deployments they are of")
	rounds = flag.Int("rounds", 3, "how often to measure, by turns with the floor")
)

// The floor is what no controller can go below: two patches a pod, 32 in flight, and nothing else.
var _ = Describe("the time for many pods", func() {
	It("is near that of two patches a pod", Label("measure"), func(ctx SpecContext) {
		if *many == 0 {
			Skip("without -gated")
		}
		took, floor := make([]time.Duration, 0, *rounds), make([]time.Duration, 0, *rounds)
		for range *rounds {
			ns := gated(ctx)
			floor = append(floor, twoPatches(ctx, ns))
			remove(ctx, ns)
			ns = gated(ctx)
			begin := time.Now()
			stop := control(ns)
			Eventually(func(ctx context.Context) int { return waiting(ctx, ns) }).WithContext(ctx).WithPolling(50 * time.Millisecond).Should(BeZero())
			took = append(took, time.Since(begin))
			stop()
			remove(ctx, ns)
		}
		slices.Sort(took)
		slices.Sort(floor)
		_, _ = fmt.Fprintf(GinkgoWriter, "%d pods of %d Deployments: %v, floor %v, medians %v and %v, ratio %.2f\n", *many, *owners, took, floor,
			took[len(took)/2], floor[len(floor)/2], took[len(took)/2].Seconds()/floor[len(floor)/2].Seconds())
	})
})

func gated(ctx context.Context) string {
	GinkgoHelper()
	ns := newNamespace(ctx)
	for i := range *owners {
		create(ctx, ns, deployment(fmt.Sprintf("worker-%d", i), int32(*many / *owners))) //nolint:gosec // it is small
	}
	Eventually(func(ctx context.Context) int { return waiting(ctx, ns) }).WithContext(ctx).Should(Equal(*many))
	return ns
}

// waiting counts the pods without an id, by what the API server has in its cache.
func waiting(ctx context.Context, ns string) (n int) {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: fields.OneTermEqualSelector("status.phase", "Pending").String()})
	Expect(err).NotTo(HaveOccurred())
	for i := range list.Items {
		if len(list.Items[i].Spec.SchedulingGates) > 0 {
			n++
		}
	}
	return n
}

func twoPatches(ctx context.Context, ns string) time.Duration {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	begin := time.Now()
	for _, text := range []string{
		`{"metadata":{"annotations":{"idalloc.dev/receipt":"%0100d"},"labels":{"idalloc.dev/owner":"deployment.worker","idalloc.dev/instance-id":"%d"}}}`,
		`{"metadata":{"annotations":{"idalloc.dev/receipt":"%0110d","idalloc.dev/identity":"%0180d"}},"spec":{"schedulingGates":null}}`,
	} {
		var all sync.WaitGroup
		slots := make(chan struct{}, 32)
		for i := range list.Items {
			slots <- struct{}{}
			all.Go(func() {
				defer GinkgoRecover()
				defer func() { <-slots }()
				_, err := client.CoreV1().Pods(ns).Patch(ctx, list.Items[i].Name, types.StrategicMergePatchType, fmt.Appendf(nil, text, i, i), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
			})
		}
		all.Wait()
	}
	return time.Since(begin)
}

func remove(ctx context.Context, ns string) {
	GinkgoHelper()
	Expect(client.AppsV1().Deployments(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
	Eventually(func(ctx context.Context) int {
		list, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: store.AssignLabel, ResourceVersion: "0"})
		Expect(err).NotTo(HaveOccurred())
		return len(list.Items)
	}).WithContext(ctx).Should(BeZero())
}
