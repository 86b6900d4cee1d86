package allocator_test

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
)

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
