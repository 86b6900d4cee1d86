package allocator_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// A process finds work of the one before it, and another receipt for its slot. The hook that is to stop the work fails at once.
func TestAHookThatFailsAtOnceIsNotCalledWithoutAPause(t *testing.T) {
	b := newBench(t, 1)
	for _, pod := range []string{"p0", "p1"} {
		b.locks(pod, receipt.Share{ID: 0})
	}
	calls := make(chan time.Time, 1000)
	b.start("p0", func(o *allocator.Options) {
		o.Left = func(string) identity.Identity {
			id := identity.Pending("p0", apifake.Namespace)
			id.State, id.ID, id.Token = identity.StateAssigned, 0, 1
			return id
		}
		o.Stop = func(ctx context.Context, _ allocator.Stop) error {
			select {
			case calls <- b.clk.Now():
			case <-ctx.Done():
			}
			return errors.New("the hook fails")
		}
	})
	seldom(t, 5*time.Second, calls)
}

// lostAndFound waits until contact is lost and found.
func lostAndFound(t *testing.T, stale <-chan bool) {
	t.Helper()
	for _, want := range []bool{true, false} {
		select {
		case is := <-stale:
			if is != want {
				t.Errorf("contact is lost: %t, want %t", is, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("it is not told that contact is lost: %t", want)
		}
	}
}

// A plan fails, and before it is tried again it is not needed any more.
func TestContactIsFoundThoughNothingIsLeftToAsk(t *testing.T) {
	b := newBench(t, 1)
	stale := make(chan bool, 9)
	b.works("p0", func(o *allocator.Options) { o.Stale = func(s bool) { stale <- s } })
	right := b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()
	var failed atomic.Bool
	b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/pods") || r.URL.Query().Get("watch") != "" || failed.Swap(true) {
			return false
		}
		b.annotate(right)
		apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "busy")
		return true
	})
	b.annotate(map[string]string{assignment.Key: `{"0":"x"}`})
	lostAndFound(t, stale)
}

// A write has no answer. Then an admission policy changes all that is written, which is an answer.
func TestAServerThatChangesWhatIsWrittenIsNotAway(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	var failed atomic.Bool
	b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/pods/p0"):
			return false
		case failed.Swap(true):
			b.changed(w, apifake.Pods, "p0")
		default:
			apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "busy")
		}
		return true
	})
	stale := make(chan bool, 9)
	b.start("p0", func(o *allocator.Options) { o.Stale = func(s bool) { stale <- s } })
	lostAndFound(t, stale)
}
