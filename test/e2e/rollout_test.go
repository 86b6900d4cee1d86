//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("A rollout", func() {
	DescribeTable("completes by itself, and every id is another pod's", func(ctx SpecContext, e example, n int) {
		w := prepare(ctx, e, n)
		w.apply(ctx)
		before := w.held(ctx, n)
		for id, pod := range before {
			if e == variable {
				said, err := w.kubectl(ctx, "exec", pod, "-c", name, "--", program, "variable", "MACHINE_ID")
				Expect(err).NotTo(HaveOccurred())
				Expect(strings.TrimSpace(said)).To(Equal(strconv.Itoa(id)))
			}
		}
		w.restart(ctx)
		after := w.held(ctx, n)
		for id, pod := range before {
			Expect(after[id]).NotTo(Equal(pod))
		}
	},
		Entry("with the default strategy", Label(mainFlow), linked, 2, SpecTimeout(2*patience)),
		Entry("with a drain hook", Label(mainFlow), drain, 3, SpecTimeout(2*patience)),
		Entry("of a program in an image of its own, which idalloc run starts", Label(mainFlow), run, 2, SpecTimeout(2*patience)),
		Entry("of a program that gets its id as a variable", Label(mainFlow), variable, 3, SpecTimeout(2*patience)),
	)

	DescribeTable("of a revision that is broken is rolled back half-way", func(ctx SpecContext, n int, patch string, broken func(corev1.Pod) bool) {
		w, before := startLinked(ctx, n)
		w.revise(ctx, patch)
		Eventually(func(g Gomega, ctx context.Context) {
			pods, _ := w.others(ctx, g, before)
			g.Expect(pods).To(ContainElement(Satisfy(broken)))
		}).WithContext(ctx).Should(Succeed())
		w.undo(ctx)
		w.held(ctx, n)
	},
		Entry("2 replicas, it exits at once", Label(mainFlow), 2, exits, crashed, SpecTimeout(patience)),
		Entry("4 replicas, its image cannot be had", 4, absent, imageless, SpecTimeout(patience)),
		Entry("4 replicas, it takes an id and is never Ready", 4, unready, working, SpecTimeout(patience)),
	)
})

// Revisions that do not work, as patches of the container, and how a pod of each is known.
const (
	exits   = `{"name":"worker","command":["/idalloc","no-such-command"]}`
	absent  = `{"name":"worker","image":"docker.io/idalloc/absent:1"}`
	unready = `{"name":"worker","env":[{"name":"HTTP_ADDRESS","value":":9090"}]}`
)

func crashed(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name && s.RestartCount > 0 })
}

func imageless(p corev1.Pod) bool {
	return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
		p.Status.ContainerStatuses[0].State.Waiting.Reason == "ErrImageNeverPull"
}

func working(p corev1.Pod) bool { return p.Labels[idLabel] != "" }
