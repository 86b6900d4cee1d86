package allocation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
)

var _ = Describe("damage", func() {
	var (
		w         *workload
		instances map[string]*idcontext.Instance
		first     map[string]identity.Identity
	)
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, store.Deployment)
		instances, first = map[string]*idcontext.Instance{}, map[string]identity.Identity{}
		for _, pod := range w.idle(ctx, 3) {
			instances[pod.Name] = w.instance(ctx, pod.Name)
		}
		for name, i := range instances {
			id, err := i.Wait(ctx)
			Expect(err).NotTo(HaveOccurred())
			first[name] = id
		}
	})

	// restored waits until the map says again what the pods hold, and checks that nobody was disturbed.
	restored := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			owner := w.owner(ctx)
			g.Expect(owner.Clean()).To(BeTrue())
			g.Expect(owner.Record.State.Slots).To(HaveLen(3))
			for name, id := range first {
				g.Expect(owner.Record.State.Slots).To(HaveKeyWithValue(id.ID, name))
			}
		}).WithContext(ctx).Should(Succeed())
		for name, i := range instances {
			Expect(i.Current()).To(Equal(first[name]), "the work of a holder was interrupted")
		}
	}

	// quoted waits for an Event on the owner whose message has all parts.
	quoted := func(ctx context.Context, parts ...string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			events, err := env.Client.CoreV1().Events(w.Name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=worker,involvedObject.kind=Deployment"})
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

	DescribeTable("of the assignment is quoted in an Event and repaired from the receipts",
		func(ctx SpecContext, key, value, quote string) {
			w.annotate(ctx, map[string]any{key: value})
			restored(ctx)
			quoted(ctx, key, quote)
		},
		Entry("not JSON", assignment.DefaultKey, `worker`, `worker`),
		Entry("a list", assignment.DefaultKey, `["a","b"]`, `not a JSON object`),
		Entry("a negative id", assignment.DefaultKey, `{"-1":"a"}`, `-1`),
		Entry("a leading zero", assignment.DefaultKey, `{"01":"a"}`, `01`),
		Entry("an exponent", assignment.DefaultKey, `{"1e3":"a"}`, `1e3`),
		Entry("a word", assignment.DefaultKey, `{"x":"a"}`, `"x"`),
		Entry("a name twice", assignment.DefaultKey, `{"0":"a","1":"a"}`, `"a" stands twice`),
		Entry("a broken epoch", assignment.EpochKey, `soon`, `soon`),
		Entry("an epoch beyond 2^53 - 1", assignment.EpochKey, `9007199254740992`, `9007199254740992`),
		Entry("an epoch of the far future", assignment.EpochKey, strconv.FormatInt(time.Now().Add(48*time.Hour).UnixMilli(), 10), `ahead of the clock`),
		Entry("a broken hand-over", assignment.HandoverKey, `{"0":`, assignment.HandoverKey),
	)

	It("that is still readable is repaired too", func(ctx SpecContext) {
		By("giving every slot to somebody else by hand")
		w.annotate(ctx, map[string]any{assignment.DefaultKey: `{"0":"x","1":"y","2":"z"}`})
		restored(ctx)
		By("swapping two holders")
		names := w.assignment(ctx)
		w.annotate(ctx, map[string]any{assignment.DefaultKey: assignment.Slots{0: names[1], 1: names[0], 2: names[2]}.Encode()})
		restored(ctx)
		By("removing all annotations")
		w.annotate(ctx, map[string]any{assignment.DefaultKey: nil, assignment.EpochKey: nil, assignment.SealKey: nil})
		restored(ctx)
		By("bringing back an older, intact state")
		old := w.owner(ctx).Annotations
		w.annotate(ctx, map[string]any{"example.com/x": "1", assignment.SealKey: "broken"})
		restored(ctx)
		w.annotate(ctx, map[string]any{
			assignment.DefaultKey: old[assignment.DefaultKey], assignment.EpochKey: old[assignment.EpochKey], assignment.SealKey: old[assignment.SealKey],
		})
		restored(ctx)
	})

	It("does not let a newcomer into a live holder's slot", func(ctx SpecContext) {
		Expect(w.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
		pods := w.somePods(ctx, 4)
		for name := range first {
			id := first[name]
			id.Count = 4
			first[name] = id
			Eventually(instances[name].Current).WithContext(ctx).Should(Equal(id))
		}
		w.annotate(ctx, map[string]any{assignment.DefaultKey: nil, assignment.EpochKey: nil, assignment.SealKey: nil})
		for _, pod := range pods {
			if _, known := first[pod.Name]; !known {
				Expect(w.instance(ctx, pod.Name).Wait(ctx)).To(HaveField("ID", 3))
			}
		}
		for name, i := range instances {
			Expect(i.Current()).To(Equal(first[name]))
		}
	})

	It("of a receipt makes its pod take its id again", func(ctx SpecContext) {
		var name string
		for name = range first {
			break
		}
		w.patchPod(ctx, name, `{"metadata":{"annotations":{"idalloc.dev/receipt":null},"labels":{"idalloc.dev/instance-id":null}}}`)
		Eventually(func() map[string]string { return w.pod(ctx, name).Annotations }).WithContext(ctx).Should(HaveKey(assignment.ReceiptKey))
		Expect(instances[name].Wait(ctx)).To(HaveField("ID", first[name].ID))
		quoted(ctx, assignment.ReceiptKey, name)
	})

	DescribeTable("of a label alone is repaired without touching the id", func(ctx SpecContext, label, value string) {
		name := w.assignment(ctx)[0]
		changes := instances[name].Changes()
		Eventually(changes).WithContext(ctx).Should(Receive(Equal(first[name])))
		w.patchPod(ctx, name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label))
		Eventually(func() map[string]string { return w.pod(ctx, name).Labels }).WithContext(ctx).Should(HaveKeyWithValue(label, value))
		Expect(instances[name].Current()).To(Equal(first[name]))
		Consistently(changes, 200*time.Millisecond).ShouldNot(Receive())
	},
		Entry("the id", assignment.InstanceIDLabel, "0"),
		Entry("the owner", assignment.OwnerLabel, "deployment.worker"),
	)

	It("to managedFields leaves everything working", func(ctx SpecContext) {
		w.untrack(ctx)
		Expect(w.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		held := map[int]bool{}
		for _, pod := range w.somePods(ctx, 5) {
			i, running := instances[pod.Name]
			if !running {
				i = w.instance(ctx, pod.Name)
			}
			id, err := i.Wait(ctx)
			Expect(err).NotTo(HaveOccurred())
			if running {
				Expect(id.ID).To(Equal(first[pod.Name].ID))
			}
			Expect(held).NotTo(HaveKey(id.ID))
			held[id.ID] = true
		}
		Expect(held).To(HaveLen(5))
	})

	It("is told apart from what a newer version wrote, which is refused and left alone", func(ctx SpecContext) {
		const later = `[{"id":0,"pod":"worker"}]`
		w.newer(ctx, map[string]any{assignment.DefaultKey: later})
		Expect(w.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
		for _, pod := range w.somePods(ctx, 4) {
			if _, known := first[pod.Name]; !known {
				_, err := w.instance(ctx, pod.Name).Wait(ctx)
				Expect(err).To(MatchError(store.ErrNewer))
			}
		}
		Expect(w.owner(ctx).Annotations).To(HaveKeyWithValue(assignment.DefaultKey, later))
		for name, i := range instances {
			Expect(i.Current()).To(HaveField("ID", first[name].ID), "holders keep their ids")
		}
		By("taking it away again, as an operator would; the holders restore their own")
		w.annotate(ctx, map[string]any{assignment.DefaultKey: nil, assignment.EpochKey: nil, assignment.SealKey: nil})
		restored := func() bool { return w.owner(ctx).Clean() }
		Eventually(restored).WithContext(ctx).Should(BeTrue())
	})
})
