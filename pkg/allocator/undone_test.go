package allocator_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/apifake"
)

// ahead is a clock that goes before another one.
type ahead struct {
	clock.Clock

	by time.Duration
}

func (a ahead) Now() time.Time                  { return a.Clock.Now().Add(a.by) }
func (a ahead) Since(t time.Time) time.Duration { return a.Now().Sub(t) }

// A pod writes later and later what others undo on the owner.
func TestWhatOthersUndoAgainAndAgainIsWrittenSeldom(t *testing.T) {
	undo := func(b *bench, undoes func(a map[string]string) bool) {
		go b.api.Await(b.t.Context(), func() bool {
			if undoes(b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()) {
				b.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
					if a := o.GetAnnotations(); undoes(a) {
						o.SetAnnotations(a)
					}
				})
			}
			return false
		})
	}
	keepsWorking := func(o *allocator.Options) {
		o.Divides = true
		o.Stop = func(ctx context.Context, _ allocator.Stop) error { <-ctx.Done(); return ctx.Err() }
	}
	for name, act := range map[string]func(b *bench){
		"a waiter's request is removed": func(b *bench) {
			b.rolls("2", 2)
			b.of("rs-2", "new")
			undo(b, func(a map[string]string) bool {
				_, has := a[assignment.HandoverKey]
				delete(a, assignment.HandoverKey)
				return has
			})
			b.start("new", nil)
		},
		"a holder's entry is removed": func(b *bench) {
			undo(b, func(a map[string]string) bool { _, has := a[assignment.Key]; delete(a, assignment.Key); return has })
		},
		"a wrong row is put back": func(b *bench) {
			const wrong = `{"count":12,"strategy":"sticky","owners":{"0":"0-10"}}`
			b.edit(apifake.Deployment, apifake.Worker, func(a map[string]string) { a[assignment.PartitionCountKey] = "12" })
			b.until("all for one", worksOn("p0", 12))
			undo(b, func(a map[string]string) bool {
				was := a[assignment.PartitionOwnersKey]
				a[assignment.PartitionOwnersKey] = wrong
				return was != wrong
			})
		},
		"a dead pod is named again": func(b *bench) {
			undo(b, func(a map[string]string) bool {
				named := strings.Contains(a[assignment.Key], "ghost")
				a[assignment.Key] = `{"0":"p0","1":"ghost"}`
				return !named
			})
			b.pod("new")
			b.start("new", nil)
		},
		"another holder's entry is removed each time, while a pod waits": func(b *bench) {
			b.scale(3)
			b.works("p1", nil)
			b.works("p2", nil)
			next := 0
			undo(b, func(a map[string]string) bool {
				slots, err := assignment.ParseSlots(a[assignment.Key])
				whole := err == nil && len(slots) == 3
				if whole {
					delete(slots, next%3)
					a[assignment.Key] = slots.Encode()
					next++
				}
				return whole
			})
			b.pod("new")
			b.start("new", nil)
		},
		"another dead pod is named each time, for another slot": func(b *bench) {
			next := 1
			undo(b, func(a map[string]string) bool {
				named := strings.Contains(a[assignment.Key], "ghost")
				a[assignment.Key] = fmt.Sprintf(`{"0":"p0","%d":"ghost-%d"}`, next, next)
				next++
				return !named
			})
			b.pod("new")
			b.start("new", nil)
		},
		"two revisions take themselves for the current one": func(b *bench) {
			b.rolls("2", 3)
			b.of("rs-2", "one")
			b.of("rs-3", "other")
			b.start("one", nil)
			b.start("other", nil)
		},
		"two clocks differ about a lost pod": func(b *bench) {
			b.scale(2)
			b.pod("lost")
			b.receipt("lost", receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: 1}, Strict: true})
			b.api.Change(apifake.Pods, "lost", func(o *unstructured.Unstructured) {
				deadline := metav1.NewTime(b.clk.Now().Add(24 * time.Hour))
				o.SetDeletionTimestamp(&deadline)
			})
			b.pod("one")
			b.pod("other")
			b.start("one", nil)
			b.start("other", func(o *allocator.Options) {
				s := b.api.Store(b.t, ahead{b.clk, 48 * time.Hour})
				o.Store = s
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.works("p0", keepsWorking)
			times := b.times(asks(http.MethodPatch, "/deployments/worker"))
			act(b)
			seldom(t, 5*time.Second, times)
		})
	}
}

// Another program changed the receipt. While the watch is silent, the pod's plans go by what lists show, and it goes by what it wrote.
func TestPlansInVainAreSeldomWhileListsShowAnotherReceipt(t *testing.T) {
	for name, tc := range map[string]struct{ key, says, receipt, shown string }{
		"a holder's names another slot":                {assignment.Key, `{"7":"p0"}`, `\"id\":0`, `\"id\":7`},
		"that of a pod that gave up its slot locks it": {assignment.HandoverKey, `{"0":"new"}`, `\"gaveUp\":true`, `\"id\":0`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			b.works("p0", nil)
			b.newer("new")
			b.receipt("new", receipt.Receipt{State: receipt.Waits})
			lists := make(chan time.Time, 10000)
			b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/pods") || r.URL.Query().Has("watch") || r.Header.Get("Copy") != "" {
					return false
				}
				lists <- b.clk.Now()
				answer, err := http.DefaultClient.Do(b.copyOf(r)) //nolint:gosec // the test's own server
				if err != nil {
					return true // the test has ended
				}
				defer func() { _ = answer.Body.Close() }()
				body, err := io.ReadAll(answer.Body)
				w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
				if _, wrong := w.Write(bytes.ReplaceAll(body, []byte(tc.receipt), []byte(tc.shown))); err != nil || wrong != nil {
					t.Error(err, wrong)
				}
				return true
			})
			b.edit(apifake.Deployment, apifake.Worker, func(a map[string]string) { a[tc.key] = tc.says })
			seldom(t, 5*time.Second, lists)
		})
	}
}
