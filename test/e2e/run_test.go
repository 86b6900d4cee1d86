//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The run example", func() {
	It("brings idalloc into another image, and hands the ids over in a rolling update", Label(mainFlow), func(ctx SpecContext) {
		w := newWorkload(ctx, run)
		w.manifest.deployment.Spec.Replicas = new(int32(2))
		w.apply(ctx)
		before := w.held(ctx, 2)
		Expect(w.kubectl(ctx, "rollout", "restart", "deployment", name)).Error().NotTo(HaveOccurred())
		after := w.held(ctx, 2)
		for id, pod := range before {
			Expect(after[id]).NotTo(Equal(pod))
		}
		w.expectNoOverlap()
	}, SpecTimeout(patience))
})
