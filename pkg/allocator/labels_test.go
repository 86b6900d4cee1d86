package allocator_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// Others find a receipt by its labels. Without them it locks nothing for others, although the annotation is as it was.
func TestRemovedLabelsStopTheWorkAndAreWrittenAgain(t *testing.T) {
	for _, label := range []string{receipt.IDLabel, receipt.OwnerLabel} {
		t.Run(label, func(t *testing.T) {
			b := newBench(t, 1)
			b.pod("p0")
			b.start("p0", nil)
			b.until("the id", has(0))
			token := b.shows("p0").Token
			b.api.Change(apifake.Pods, "p0", func(o *unstructured.Unstructured) {
				labels := o.GetLabels()
				delete(labels, label)
				o.SetLabels(labels)
			})
			b.until("the id again", func(now map[string]identity.Identity) bool { return now["p0"].Assigned() && now["p0"].Token > token })
			if b.api.Get(apifake.Pods, "p0").GetLabels()[label] == "" {
				t.Error("others do not find the receipt")
			}
		})
	}
}

// While a pod is fenced another one may have the id. So what it gets after that is another lock, with another token.
func TestAnIDAfterAFenceHasAnotherToken(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	b.pod("p0")
	b.start("p0", func(o *allocator.Options) { o.FenceAfter = 2 * time.Minute })
	b.until("an id", has(0))
	token := b.shows("p0").Token
	clk.slept.Store(int64(2 * time.Minute))
	b.scale(2) // the loop hears of that
	b.until("the fence", fenced)
	b.until("the id again", has(0))
	if again := b.shows("p0").Token; again <= token {
		t.Errorf("the token was %d, and is %d after the fence", token, again)
	}
}
