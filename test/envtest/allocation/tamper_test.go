package allocation

import (
	"context"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

var _ = Describe("damage", func() {
	var v *victims
	BeforeEach(func(ctx SpecContext) { v = holding(ctx) })

	// quoted waits for an Event on the owner whose message has all parts.
	quoted := func(ctx context.Context, parts ...string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			events, err := env.Client.CoreV1().Events(v.Name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=worker,involvedObject.kind=Deployment"})
			g.Expect(err).NotTo(HaveOccurred())
			var messages []string
			for _, e := range events.Items {
				if e.Type == corev1.EventTypeWarning {
					messages = append(messages, e.Message)
				}
			}
			matchers := ContainSubstring(parts[0])
			g.Expect(messages).To(ContainElement(matchers))
			for _, part := range parts {
				g.Expect(strings.Join(messages, "\n")).To(ContainSubstring(part))
			}
		}).WithContext(ctx).Should(Succeed())
	}

	It("of the assignment is quoted in an Event and repaired", func(ctx SpecContext) {
		v.annotate(ctx, map[string]any{assignment.Key: "no JSON"})
		v.unharmed(ctx)
		quoted(ctx, assignment.Key, "no JSON")
	})

	It("of a receipt makes its pod take its id again", Label(nightly), func(ctx SpecContext) {
		name := names(v.holders)[0]
		v.patchPod(ctx, name, `{"metadata":{"annotations":{"idalloc.dev/receipt":null},"labels":{"idalloc.dev/instance-id":null}}}`)
		Eventually(func() map[string]string { return v.pod(ctx, name).Annotations }).WithContext(ctx).Should(HaveKey(receipt.Key))
		Expect(v.instances[name].Wait(ctx)).To(HaveField("ID", v.holders[name].ID))
		quoted(ctx, receipt.Key, name)
	})
})

var _ = Describe("damage by others", func() {
	It("kubectl replace with a manifest that lacks the annotations, while pods start", func(ctx SpecContext) {
		v := holding(ctx)
		v.replace(ctx)
		Expect(v.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		v.newcomers(ctx, 5)
		v.unharmed(ctx)
		v.replace(ctx)
		v.unharmed(ctx)
	})

	It("a controller that sets the annotations every 20 ms keeps nobody from an id", Label(nightly), func(ctx SpecContext) {
		v := holding(ctx)
		back := v.ours(ctx)
		Expect(v.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		v.somePods(ctx, 5)
		written := v.countWrites(ctx, back[assignment.Key].(string)) //nolint:errcheck,forcetypeassert // holding waited for it
		ended := make(chan struct{})
		var writing sync.WaitGroup
		defer writing.Wait()
		writing.Go(func() {
			defer GinkgoRecover()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				v.annotate(ctx, back)
				select {
				case <-tick.C:
				case <-ended:
					return
				}
			}
		})
		for _, pod := range v.somePods(ctx, 5) {
			if v.instances[pod.Name] == nil {
				v.start(ctx, pod.Name)
			}
		}
		for _, i := range v.instances {
			_, err := i.Wait(ctx)
			Expect(err).NotTo(HaveOccurred())
		}
		written()
		Consistently(written, 10*time.Second, time.Second).Should(BeNumerically("<", 40), "of 500 writes of the other one few are answered")
		close(ended)
		writing.Wait()
		v.newcomers(ctx, 5)
		v.unharmed(ctx)
		told := map[string]int{}
		for _, e := range v.told(ctx) {
			told[e.Reason]++
		}
		Expect(told).To(HaveKeyWithValue("AssignmentRestored", BeNumerically("<=", 3)), "one a minute")
	})

	DescribeTable("a copied pod", func(ctx SpecContext, change func(*corev1.Pod)) {
		v := holding(ctx)
		original := v.assignment(ctx)[1]
		pod := v.pod(ctx, original)
		twin := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: original + "-debug", Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences},
			Spec:       *suite.PodSpec(suite.Container("main", "/bin/sleep", "1000")),
		}
		// So that it stays when the ReplicaSet ends one pod too many. That is the copy, which no node may run.
		twin.Finalizers = []string{"test.idalloc.dev/stays"}
		twin.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "test.idalloc.dev/never"}}
		change(twin)
		Expect(v.Create(ctx, twin)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { v.patchPod(ctx, twin.Name, `{"metadata":{"finalizers":null}}`) })
		copied, err := idalloc.Start(ctx, v.options(ctx, twin.Name))
		if err == nil {
			DeferCleanup(copied.Close)
			v.follow(copied, twin.UID)
			Eventually(func() *metav1.Time { return v.pod(ctx, twin.Name).DeletionTimestamp }).WithContext(ctx).ShouldNot(BeNil(), "the ReplicaSet has a pod too many")
		}
		By("planning with the copy there")
		v.wipe(ctx)
		v.unharmed(ctx)
		By("letting the original go: its slot is free although the copy lives")
		delete(v.holders, original)
		Expect(v.instances[original].Close(ctx)).To(Succeed())
		v.deletePod(ctx, original)
		v.newcomers(ctx, 3)
		v.unharmed(ctx)
		if copied != nil {
			Expect(copied.Current().Assigned()).To(BeFalse())
		}
	},
		Entry("with its labels and annotations, without ownerReferences", Label(nightly), func(p *corev1.Pod) {
			p.OwnerReferences = nil
			delete(p.Labels, "app")
			delete(p.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		}),
		Entry("with everything", Label(nightly), func(*corev1.Pod) {}),
	)
})
