package allocator_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// removals are ways to take from a pod what others find its lock by.
func removals() map[string]func(b *bench, edit func(func(annotations map[string]string))) {
	without := func(label string) func(*bench, func(func(map[string]string))) {
		return func(b *bench, _ func(func(map[string]string))) {
			b.api.Change(apifake.Pods, "p0", func(o *unstructured.Unstructured) {
				labels := o.GetLabels()
				delete(labels, label)
				o.SetLabels(labels)
			})
		}
	}
	remove := func(a map[string]string) { delete(a, receipt.Key) }
	return map[string]func(b *bench, edit func(func(annotations map[string]string))){
		"the receipt":         func(_ *bench, edit func(func(map[string]string))) { edit(remove) },
		"the label of the id": without(receipt.IDLabel),
		"that of the owner":   without(receipt.OwnerLabel),
		// The API server forgets which of more than ten managers wrote what.
		"the receipt beside ten managers": func(b *bench, edit func(func(map[string]string))) {
			for i := range 12 {
				b.patch(fmt.Sprint("m", i), fmt.Sprintf(`{"metadata":{"annotations":{"example.com/%d":"x"}}}`, i))
			}
			edit(remove)
		},
		// A late write may bring the bytes back before the process reads them.
		"a receipt whose bytes come back": func(b *bench, edit func(func(map[string]string))) {
			text := b.ownReceipt()
			var back sync.Once
			b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods/p0") {
					back.Do(func() { edit(func(a map[string]string) { a[receipt.Key] = text }) })
				}
				return false
			})
			edit(remove)
		},
	}
}

// patch changes the pod p0 for another program.
func (b *bench) patch(manager, text string) {
	b.t.Helper()
	url := fmt.Sprintf("%s/api/v1/namespaces/%s/pods/p0?fieldManager=%s", b.api.Config().Host, apifake.Namespace, manager)
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPatch, url, strings.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/merge-patch+json")
	b.send(r)
}

// Others find a receipt by its labels. Without them, or without the receipt, another pod may have locked the slot: the work stops, and begins again
// under a new lock.
func TestALockThatIsRemovedStopsTheWorkAndIsWrittenAgain(t *testing.T) {
	for name, removes := range removals() {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.pod("p0")
			b.pod("p1")
			stops := make(chan allocator.Stop, 9)
			b.works("p0", func(o *allocator.Options) {
				o.Stop = func(_ context.Context, s allocator.Stop) error { stops <- s; return nil }
			})
			b.start("p1", nil)
			b.await("p1 waits", func() bool { return b.says("p1", receipt.Waits) })
			token := b.shows("p0").Token
			removes(b, func(change func(map[string]string)) { b.edit(apifake.Pods, "p0", change) })
			b.until("the id again", func(now map[string]identity.Identity) bool { return now["p0"].Assigned() && now["p0"].Token > token })
			if s := <-stops; !s.All || !s.Lost {
				t.Errorf("the stop is %+v", s)
			}
			if labels := b.api.Get(apifake.Pods, "p0").GetLabels(); labels[receipt.IDLabel] == "" || labels[receipt.OwnerLabel] == "" {
				t.Errorf("others do not find the receipt by %v", labels)
			}
		})
	}
}
