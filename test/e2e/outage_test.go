//go:build e2e

package e2e

import (
	"context"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("In an outage", Serial, func() {
	It("of API server and etcd a rollout waits, and completes afterwards", func(ctx SpecContext) {
		c := breakable()
		w, before := startLinked(ctx, 4)
		w.restart(ctx)
		Eventually(func(g Gomega, ctx context.Context) {
			_, held := w.others(ctx, g, before)
			g.Expect(held).NotTo(BeEmpty(), "ids of the new revision")
		}).WithContext(ctx).WithPolling(10 * time.Millisecond).Should(Succeed())
		DeferCleanup(c.start)
		c.signal(syscall.SIGKILL, "apiserver", "etcd")
		c.start(ctx)
		w.held(ctx, 4)
	}, SpecTimeout(2*patience))
})
