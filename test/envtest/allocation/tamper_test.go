package allocation

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
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

})
