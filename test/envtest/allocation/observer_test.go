package allocation

import (
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// witness keeps the types of the events that it was told, and the states that were published.
type witness struct {
	mu   sync.Mutex
	seen []string
}

// Observe implements event.Observer.
func (w *witness) Observe(e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if published, ok := e.(event.Published); ok {
		w.seen = append(w.seen, "published "+string(published.To.State))
		return
	}
	w.seen = append(w.seen, fmt.Sprintf("%T", e))
}

var _ = Describe("An observer of an allocator", func() {
	It("hears what happens to the claim, in its order", func(ctx SpecContext) {
		w := newWorkload(ctx, store.Deployment)
		pod := w.idle(ctx, 1)[0].Name
		told := &witness{}
		a, err := allocator.New(ctx, allocator.Options{Store: w.store, Pod: pod, Namespace: w.Name, Observer: told})
		Expect(err).NotTo(HaveOccurred())
		id, err := a.Claim(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(id.Assigned()).To(BeTrue())
		Expect(a.Release(ctx, false)).To(Succeed())
		Expect(told.seen).To(HaveExactElements(
			"event.Claiming", "published pending", "event.Planned", "event.Written", "event.Taken", "event.Claimed", "published assigned",
			"published released", "event.Planned", "event.Written",
		))
	})
})
