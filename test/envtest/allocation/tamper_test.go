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
	"github.com/idalloc/idalloc/pkg/identity"
)

var _ = Describe("damage", func() {
	var v *victims
	BeforeEach(func(ctx SpecContext) { v = holding(ctx, 3) })

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

	DescribeTable("of the assignment is quoted in an Event and repaired from the receipts",
		func(ctx SpecContext, key, value, quote string) {
			v.annotate(ctx, map[string]any{key: value})
			v.unharmed(ctx)
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
		v.annotate(ctx, map[string]any{assignment.DefaultKey: `{"0":"x","1":"y","2":"z"}`})
		v.unharmed(ctx)
		By("swapping two holders")
		names := v.assignment(ctx)
		v.annotate(ctx, map[string]any{assignment.DefaultKey: assignment.Slots{0: names[1], 1: names[0], 2: names[2]}.Encode()})
		v.unharmed(ctx)
		By("removing all annotations")
		v.annotate(ctx, map[string]any{assignment.DefaultKey: nil, assignment.EpochKey: nil, assignment.SealKey: nil})
		v.unharmed(ctx)
		By("bringing back an older, intact state")
		old := v.ours(ctx)
		v.annotate(ctx, map[string]any{"example.com/x": "1", assignment.SealKey: "broken"})
		v.unharmed(ctx)
		v.annotate(ctx, old)
		v.unharmed(ctx)
	})

	It("does not let a newcomer into a live holder's slot", func(ctx SpecContext) {
		Expect(v.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
		pods := v.somePods(ctx, 4)
		for name, id := range v.holders {
			id.Count = 4
			v.holders[name] = id
			Eventually(v.instances[name].Current).WithContext(ctx).Should(Equal(id))
		}
		v.annotate(ctx, map[string]any{assignment.DefaultKey: nil, assignment.EpochKey: nil, assignment.SealKey: nil})
		for _, pod := range pods {
			if _, known := v.holders[pod.Name]; !known {
				Expect(v.start(ctx, pod.Name).Wait(ctx)).To(HaveField("ID", 3))
			}
		}
		for name, id := range v.holders {
			Expect(v.instances[name].Current()).To(Equal(id))
		}
	})

	It("of a receipt makes its pod take its id again", func(ctx SpecContext) {
		name := names(v.holders)[0]
		v.patchPod(ctx, name, `{"metadata":{"annotations":{"idalloc.dev/receipt":null},"labels":{"idalloc.dev/instance-id":null}}}`)
		Eventually(func() map[string]string { return v.pod(ctx, name).Annotations }).WithContext(ctx).Should(HaveKey(assignment.ReceiptKey))
		Expect(v.instances[name].Wait(ctx)).To(HaveField("ID", v.holders[name].ID))
		quoted(ctx, assignment.ReceiptKey, name)
	})

	DescribeTable("of a label alone is repaired without touching the id", func(ctx SpecContext, label, value string) {
		name := v.assignment(ctx)[0]
		v.patchPod(ctx, name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label))
		Eventually(func() map[string]string { return v.pod(ctx, name).Labels }).WithContext(ctx).Should(HaveKeyWithValue(label, value))
		Expect(v.instances[name].Current()).To(Equal(v.holders[name]))
		Consistently(func() []identity.Identity { return v.since(v.at, name) }, 200*time.Millisecond).Should(BeEmpty())
	},
		Entry("the id", assignment.InstanceIDLabel, "0"),
		Entry("the owner", assignment.OwnerLabel, "deployment.worker"),
	)

	It("to managedFields leaves everything working", func(ctx SpecContext) {
		v.untrack(ctx)
		Expect(v.Scale(ctx, store.Deployment, "worker", 5)).To(Succeed())
		held := map[int]bool{}
		for _, pod := range v.somePods(ctx, 5) {
			i, running := v.instances[pod.Name]
			if !running {
				i = v.start(ctx, pod.Name)
			}
			id, err := i.Wait(ctx)
			Expect(err).NotTo(HaveOccurred())
			if running {
				Expect(id.ID).To(Equal(v.holders[pod.Name].ID))
			}
			Expect(held).NotTo(HaveKey(id.ID))
			held[id.ID] = true
		}
		Expect(held).To(HaveLen(5))
	})

	It("is told apart from what a newer version wrote, which is refused and left alone", func(ctx SpecContext) {
		const later = `[{"id":0,"pod":"worker"}]`
		v.newer(ctx, map[string]any{assignment.DefaultKey: later})
		Expect(v.Scale(ctx, store.Deployment, "worker", 4)).To(Succeed())
		for _, pod := range v.somePods(ctx, 4) {
			if _, known := v.holders[pod.Name]; !known {
				_, err := v.start(ctx, pod.Name).Wait(ctx)
				Expect(err).To(MatchError(store.ErrNewer))
			}
		}
		Expect(v.owner(ctx).Annotations).To(HaveKeyWithValue(assignment.DefaultKey, later))
		for name, id := range v.holders {
			Expect(v.instances[name].Current()).To(HaveField("ID", id.ID), "holders keep their ids")
		}
		By("taking it away again, as an operator would; the holders restore their own")
		v.annotate(ctx, map[string]any{assignment.DefaultKey: nil, assignment.EpochKey: nil, assignment.SealKey: nil})
		restored := func() bool { return v.owner(ctx).Clean() }
		Eventually(restored).WithContext(ctx).Should(BeTrue())
	})
})
