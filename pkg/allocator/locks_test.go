package allocator_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// A webhook refuses that the slot is given up. The first copy of that write may still be on its way, so work begins again only under a receipt
// with other bytes.
func TestWorkBeginsAgainOnlyUnderANewReceiptAfterAFailedWrite(t *testing.T) {
	b := newBench(t, 1)
	seen := make(chan struct{}, 99)
	b.api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !asks(http.MethodPatch, "/pods/p0")(r) || !strings.Contains(b.sends(r), "gaveUp") {
			return false
		}
		apifake.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "freeze" denied the request: not now`)
		seen <- struct{}{}
		return true
	})
	b.works("p0", nil)
	b.scale(0)
	<-seen
	before := b.ownReceipt()
	b.scale(1)
	b.until("the id again", has(0))
	if b.ownReceipt() == before {
		t.Error("it works under the receipt that a late write may replace")
	}
}

// Something between the pod and the API server repeats a write. The answer is that to the second copy.
func TestASecondCopyOfAWriteStopsNoWork(t *testing.T) {
	b := newBench(t, 1)
	b.annotate(map[string]string{assignment.PartitionCountKey: "4"})
	b.pod("p0")
	var twice atomic.Bool
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if asks(http.MethodPatch, "/pods/p0")(r) && r.Header.Get("Copy") == "" && twice.CompareAndSwap(true, false) {
			b.send(b.copyOf(r))
		}
		return false
	})
	damaged := make(chan event.Damaged, 99)
	stops := make(chan allocator.Stop, 99)
	b.start("p0", func(o *allocator.Options) {
		o.Divides = true
		o.Stop = func(_ context.Context, s allocator.Stop) error { stops <- s; return nil }
		o.Observer = observer(func(e event.Event) {
			if e, is := e.(event.Damaged); is && e.Reason == "ReceiptDamaged" {
				damaged <- e
			}
		})
	})
	b.until("partitions", worksOn("p0", 4))
	before := b.shows("p0")
	twice.Store(true)
	b.annotate(map[string]string{assignment.PartitionCountKey: "8"})
	b.await("it takes more", func() bool { return strings.Contains(b.ownReceipt(), `"0-7 of 8"`) })
	b.until("more partitions", worksOn("p0", 8))
	if now := b.shows("p0"); len(damaged) > 0 || len(stops) > 0 || now.Token != before.Token {
		t.Errorf("%d stops, other programs are blamed %d times, and the token is %d, before %d", len(stops), len(damaged), now.Token, before.Token)
	}
}

// The token is that of the lock, also for the next process of the pod. No files are needed for that.
func TestTheNextProcessOfAPodShowsTheTokensOfItsLock(t *testing.T) {
	b := newBench(t, 1)
	b.annotate(map[string]string{assignment.PartitionCountKey: "4"})
	b.pod("p0")
	p0 := b.start("p0", divides)
	b.until("partitions", worksOn("p0", 4))
	b.annotate(map[string]string{assignment.PartitionCountKey: "8"})
	b.until("more", worksOn("p0", 8))
	b.await("the receipt says all tokens", func() bool { return strings.Contains(b.ownReceipt(), `"4-7":`) })
	before := b.shows("p0")
	p0.kill()
	b.start("p0", divides)
	b.until("partitions again", worksOn("p0", 8))
	if now := b.shows("p0"); now.Token != before.Token || now.Partitions != before.Partitions {
		t.Errorf("the next process shows %+v, and the one before showed %+v", now, before)
	}
}

// What the files of an earlier process show is not of the lock that the pod has now.
func TestATokenThatOnlyTheFilesHaveIsNotShown(t *testing.T) {
	for _, fenceAfter := range []time.Duration{0, allocator.MinFenceAfter} {
		b := newBench(t, 1)
		doze(b)
		pod := apifake.Holding("p0", 0)
		b.pod("p0")
		b.api.Change(apifake.Pods, "p0", func(o *unstructured.Unstructured) {
			o.SetAnnotations(pod.GetAnnotations())
			o.SetLabels(pod.GetLabels())
		})
		old := identity.Identity{State: identity.StateAssigned, ID: 0, Count: 1, Token: 7, Pod: "p0"}
		b.works("p0", func(o *allocator.Options) {
			o.FenceAfter, o.Left = fenceAfter, func(string) identity.Identity { return old }
		})
		if now := b.shows("p0"); now.Token == old.Token {
			t.Errorf("fence-after %s: an old token is shown: %+v", fenceAfter, now)
		}
	}
}

// In strict mode a lock may end with its Lease, so the next process has a token of its own.
func TestATokenOfAnEndedLockIsNeverShownAgain(t *testing.T) {
	b := newBench(t, 1)
	doze(b)
	p0 := b.works("p0", strict)
	before := b.shows("p0")
	p0.kill()
	b.works("p0", func(o *allocator.Options) {
		strict(o)
		o.Left = func(string) identity.Identity { return before }
	})
	if now := b.shows("p0"); now.Token <= before.Token {
		t.Errorf("the token is %d, and was %d", now.Token, before.Token)
	}
}

// The container of p0 starts again, and finds the receipt of a pod that crashed after it wrote that. p0 came first.
func TestAHolderDoesNotGiveWayToAPodThatCameLater(t *testing.T) {
	b := newBench(t, 1)
	p0 := b.works("p0", nil)
	b.await("the receipt says that it holds the slot", b.noted(false))
	token := b.shows("p0").Token
	p0.kill()
	b.api.Put(apifake.Holding("p1", 0))
	listed := b.times(func(r *http.Request) bool {
		return strings.Contains(r.URL.Query().Get("labelSelector"), receipt.IDLabel+"=0")
	})
	b.start("p0", func(o *allocator.Options) {
		o.Observer = on(func(e event.NotTaken) { t.Errorf("it gives way: %s", e.Reason) })
	})
	<-listed
	b.until("the id again", has(0))
	if now := b.shows("p0"); now.Token != token {
		t.Errorf("the token is %d, and was %d", now.Token, token)
	}
}

// Neither of two receipts for a slot can have come later if both say that they hold it: one was changed. Then both give way, as before.
func TestAHolderGivesWayToAReceiptThatSaysTheSame(t *testing.T) {
	b := newBench(t, 1)
	p0 := b.works("p0", nil)
	b.await("the receipt says that it holds the slot", b.noted(false))
	p0.kill()
	other := apifake.Holding("p1", 0)
	other.SetAnnotations(map[string]string{receipt.Key: strings.Replace(other.GetAnnotations()[receipt.Key], `"write"`, `"token":5,"write"`, 1)})
	b.api.Put(other)
	b.start("p0", nil)
	b.await("it gives way", func() bool { return b.says("p0", receipt.Waits) })
}

// T3 of a strict pod counts the receipts of strict pods, too: the Lease may have been removed. It does not count one that has outlived its
// grace period.
func TestAStrictPodWaitsForAStrictReceiptWithoutALease(t *testing.T) {
	b := newBench(t, 1)
	doze(b)
	other := apifake.Holding("p1", 0)
	other.SetAnnotations(map[string]string{receipt.Key: strings.Replace(other.GetAnnotations()[receipt.Key], `"write"`, `"strict":true,"write"`, 1)})
	b.api.Put(other)
	b.pod("p0")
	b.annotate(assignment.State{Slots: assignment.Slots{0: "p0"}}.Encode())
	blocked := make(chan struct{}, 99)
	b.start("p0", func(o *allocator.Options) {
		o.FenceAfter = allocator.MinFenceAfter
		o.Observer = observer(func(e event.Event) {
			switch e.(type) {
			case event.NotTaken:
				blocked <- struct{}{}
			case event.Taken:
				if end := b.api.Get(apifake.Pods, "p1").GetDeletionTimestamp(); end == nil {
					t.Error("it has the slot that another pod locks")
				}
			}
		})
	})
	<-blocked
	b.api.Change(apifake.Pods, "p1", func(o *unstructured.Unstructured) {
		end := metav1.NewTime(b.clk.Now().Add(-time.Second))
		o.SetDeletionTimestamp(&end)
	})
	b.until("the id", has(0))
}

// late has the first write of a kind get no answer: it arrives when the returned function is called.
func (b *bench) late(of func(*http.Request) bool) (came <-chan struct{}, arrive func()) {
	sent, at := make(chan struct{}), make(chan *http.Request, 1)
	var once sync.Once
	b.api.Before(func(w http.ResponseWriter, r *http.Request) (held bool) {
		if r.Header.Get("Copy") != "" || !of(r) {
			return false
		}
		once.Do(func() {
			at <- b.copyOf(r)
			apifake.Refuse(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "no answer")
			close(sent)
			held = true
		})
		return held
	})
	return sent, func() { b.send(<-at) }
}

// The process ends while its first request of a kind is under way. Nothing is left of it, however late a write arrives.
func TestAProcessThatEndsEarlyLeavesNothing(t *testing.T) {
	for name, of := range map[string]func(b *bench, r *http.Request) bool{
		"a list": func(_ *bench, r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods")
		},
		"T2":               func(_ *bench, r *http.Request) bool { return asks(http.MethodPatch, "/pods/p0")(r) },
		"T2 of an agent":   func(_ *bench, r *http.Request) bool { return asks(http.MethodPatch, "/pods/p0")(r) },
		"the Lease":        func(_ *bench, r *http.Request) bool { return asks(http.MethodPost, "/leases")(r) },
		"the map entry":    func(_ *bench, r *http.Request) bool { return asks(http.MethodPatch, "/deployments/")(r) },
		"a late map entry": func(_ *bench, r *http.Request) bool { return asks(http.MethodPatch, "/deployments/")(r) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			if b.pod("p0"); name == "T2 of an agent" {
				b.agent()
				b.tell(1, receipt.Share{ID: 0}, nil)
			}
			again, first := make(chan struct{}), sync.Once{}
			var sent atomic.Bool
			came, arrive := b.late(func(r *http.Request) bool {
				if name == "a late map entry" && sent.Load() && strings.Contains(r.URL.RawQuery, "labelSelector=app") && !r.URL.Query().Has("watch") {
					first.Do(func() {
						close(again) // it has read the owner, which lacks the entry, and plans again
						<-r.Context().Done()
					})
				}
				is := of(b, r)
				sent.Store(is || sent.Load())
				return is
			})
			p0 := b.start("p0", func(o *allocator.Options) {
				if name == "the Lease" {
					o.FenceAfter = allocator.MinFenceAfter
				}
			})
			if <-came; name == "a late map entry" {
				<-again
			}
			p0.kill()
			ofMap := strings.HasSuffix(name, "map entry")
			if ofMap {
				arrive() // the API server has it when the process ends
			}
			if err := p0.alloc.Release(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if !ofMap {
				arrive()
			}
			b.checkNothingLeft(name)
		})
	}
}

// checkNothingLeft checks that the pod p0 has no lock, no entry and no Lease, and that no plan gives it a slot.
func (b *bench) checkNothingLeft(what string) {
	b.t.Helper()
	r, err := receipt.Of(b.api.Get(apifake.Pods, "p0"), "Deployment/worker")
	entry := b.api.Get(apifake.Deployment, apifake.Worker).GetAnnotations()[assignment.Key]
	holder := ""
	if l := b.api.Get("Lease", slotlease.Name("Deployment/worker", 0)); l != nil {
		holder, _, _ = unstructured.NestedString(l.Object, "spec", "holderIdentity")
	}
	if err != nil || r.State != receipt.GaveUp || strings.Contains(entry, "p0") || holder != "" {
		b.t.Errorf("%s: the receipt is %+v (%v), the map %s, and the Lease is held by %q", what, r, err, entry, holder)
	}
}

// A renewal is under way when the slot is released. The Lease does not stay.
func TestAReleaseThatMeetsARenewalLeavesNoLease(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	p0 := b.works("p0", strict)
	came := make(chan struct{})
	var first atomic.Bool
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) (held bool) {
		if !asks(http.MethodPut, "/leases/")(r) || !first.CompareAndSwap(false, true) {
			return false
		}
		b.sends(r) // a server that has not read it all does not notice that the client is gone
		close(came)
		<-r.Context().Done()
		return true
	})
	close(clk.renews)
	<-came
	p0.release()
	b.checkNothingLeft("a renewal under way")
}

// A webhook caps how long Leases last. Others take the slot when they see that time over, so the work ends before.
func TestALeaseThatLastsShorterThanItWasToEndsTheWork(t *testing.T) {
	b := newBench(t, 1)
	clk := doze(b)
	var caps atomic.Bool
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if caps.Load() && asks(http.MethodPut, "/leases/")(r) {
			text := b.sends(r)
			text = strings.Replace(text, `"leaseDurationSeconds":13`, `"leaseDurationSeconds":1`, 1)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		}
		return false
	})
	ended := make(chan time.Duration, 9)
	b.works("p0", func(o *allocator.Options) {
		o.FenceAfter, o.Fenced = allocator.MinFenceAfter, func(by time.Duration) { ended <- by }
	})
	caps.Store(true)
	close(clk.renews)
	if by := <-ended; by > clk.BootTime() {
		t.Errorf("the work may go on for %s", by-clk.BootTime())
	}
	b.until("no id", fenced)
}

// The answer to a write may be the first to bring that another object controls the pod.
func TestAWriteThatBringsAnotherControllerIsHeard(t *testing.T) {
	b := newBench(t, 1)
	b.pod("p0")
	by := b.counts(kinds.ReplicaSet, "rs-2", nil)
	var once sync.Once
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if asks(http.MethodPatch, "/pods/p0")(r) {
			once.Do(func() { b.adopt(apifake.Pods, "p0", by) })
		}
		return false
	})
	b.start("p0", nil)
	b.until("the id of the other owner", func(now map[string]identity.Identity) bool {
		return now["p0"].Assigned() && now["p0"].Owner.String() == "ReplicaSet/rs-2"
	})
}
