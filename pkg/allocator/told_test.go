package allocator_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/apifake"
)

// agent is a pod whose process the controller tells what it would read of its owner.
const agent = "p0"

func (b *bench) agent() {
	b.pod(agent)
	b.api.Change(apifake.Pods, agent, func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		labels[receipt.AssignLabel] = receipt.ByAgent
		o.SetLabels(labels)
	})
}

// tell is the controller's word for the agent.
func (b *bench) tell(count int, share receipt.Share, change func(*receipt.Proposal)) {
	b.api.Change(apifake.Pods, agent, func(o *unstructured.Unstructured) {
		p := receipt.Proposal{
			UID: string(o.GetUID()), Owner: identity.Owner{APIVersion: apifake.Apps, Kind: "Deployment", Name: apifake.Worker}, Count: count, Share: share,
		}
		if before, ok := receipt.ProposalOf(o); ok {
			p.Confirmed = before.Confirmed
		}
		if change != nil {
			change(&p)
		}
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[receipt.ProposalKey] = p.Encode()
		o.SetAnnotations(annotations)
	})
}

// lockOf waits for a receipt of the agent that locks this share, and returns it.
func (b *bench) lockOf(share receipt.Share) (r receipt.Receipt) {
	b.t.Helper()
	if !b.api.Await(b.t.Context(), func() bool {
		r, _ = receipt.Of(b.api.Get(apifake.Pods, agent), "Deployment/"+apifake.Worker)
		return r.State == receipt.Locks && r.Share.Equal(share)
	}) {
		b.t.Fatalf("it does not lock %v: %+v", share, r)
	}
	return r
}

// confirm is the controller's T3 of what the agent locks now.
func (b *bench) confirm(share receipt.Share, others receipt.Confirmed) {
	b.t.Helper()
	others.Write, others.Share = b.lockOf(share).Write, share
	b.tell(3, share, func(p *receipt.Proposal) { p.Confirmed = &others })
}

// still has a process with a clock that stands, so that it never lists receipts by itself.
func still(t *testing.T, b *bench) func(*allocator.Options) {
	t.Helper()
	s := b.api.Store(t, testclock.NewFakeClock(time.Now()))
	return func(o *allocator.Options) { o.Store, o.Divides = s, true }
}

func TestAnAgentBeginsWhenItsLockIsConfirmed(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	b.start(agent, still(t, b))
	mine := receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(4, 5)}
	b.tell(3, mine, nil)
	b.lockOf(mine)
	if id := b.shows(agent); id.Assigned() {
		t.Errorf("it shows %s before its lock is confirmed", id)
	}
	b.confirm(mine, receipt.Confirmed{Partitions: placement.Of(5), By: "p1"})
	b.until("its id, with what no other pod locks", func(now map[string]identity.Identity) bool {
		return now[agent].Assigned() && now[agent].ID == 2 && now[agent].Count == 3 && now[agent].Partitions.Owned().Equal(placement.Of(4))
	})
	for _, request := range b.api.Requests() {
		if !strings.Contains(request, " pods") {
			t.Errorf("an agent sent %s", request)
		}
	}
}

// Another program removed what the controller told the agent, and the container starts again. The process does not know yet whose slot its receipt locks.
func TestAnAgentThatIsToldLateResumesUnderItsToken(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	mine := receipt.Share{ID: 1}
	b.tell(3, mine, nil)
	first := b.works(agent, nil)
	b.await("the receipt says that it holds the slot", b.noted(false))
	token := b.shows(agent).Token
	first.kill()
	b.edit(apifake.Pods, agent, func(a map[string]string) { delete(a, receipt.ProposalKey) })
	b.start(agent, nil)
	b.tell(3, mine, nil)
	b.until("the id again", has(1))
	if now := b.shows(agent); now.Token != token {
		t.Errorf("the token is %d, and was %d", now.Token, token)
	}
}

// The same with files: the program works on meanwhile, and the controller may be away.
func TestAnAgentKeepsWhatItHasWhenTheControllersWordIsRemoved(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	b.tell(3, receipt.Share{ID: 1}, nil)
	first := b.works(agent, nil)
	b.await("the receipt says that it holds the slot", b.noted(false))
	before := b.shows(agent)
	first.kill()
	b.edit(apifake.Pods, agent, func(a map[string]string) { delete(a, receipt.ProposalKey) })
	var said []identity.Identity
	b.start(agent, func(o *allocator.Options) {
		o.Left = func(string) identity.Identity { return before }
		o.Publish = func(id identity.Identity) {
			said = append(said, id)
			b.publish(agent, id)
		}
		o.Stop = func(context.Context, allocator.Stop) error {
			t.Error("its work is told to stop")
			return nil
		}
	})
	b.until("the id again", has(1))
	if len(said) != 1 || said[0] != before {
		t.Errorf("it says %v, and the process before it said %v", said, before)
	}
	b.tell(4, receipt.Share{ID: 1}, nil)
	b.until("the count", func(now map[string]identity.Identity) bool { return now[agent].Assigned() && now[agent].Count == 4 })
}

func TestAnAgentTakesNothingThatItIsToLetGo(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	b.start(agent, still(t, b))
	b.tell(3, receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(4, 5)}, func(p *receipt.Proposal) { p.Yield = placement.Of(5) })
	b.lockOf(receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(4)})
}

func TestAnAgentWithdrawsFromASlotThatIsRefused(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	b.start(agent, still(t, b))
	b.tell(3, receipt.Share{ID: 1}, nil)
	b.confirm(receipt.Share{ID: 1}, receipt.Confirmed{Slot: true, By: "p1"})
	b.await("it withdraws", func() bool { return b.says(agent, receipt.Waits) })
	if id := b.shows(agent); id.Assigned() {
		t.Errorf("it shows %s", id)
	}
}

func TestAnAgentIsToldOfCountsRequestsAndPartitions(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	b.start(agent, divides)
	has := receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(4, 5)}
	b.tell(3, has, nil)
	b.confirm(has, receipt.Confirmed{})
	b.until("two partitions", func(now map[string]identity.Identity) bool { return now[agent].Partitions.Owned().Len() == 2 })
	b.tell(4, has, nil)
	b.until("the count", func(now map[string]identity.Identity) bool { return now[agent].Count == 4 && now[agent].Assigned() })
	b.tell(4, has, func(p *receipt.Proposal) { p.Yield = placement.Of(5) })
	b.lockOf(receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(4)})
	b.until("one partition", func(now map[string]identity.Identity) bool {
		return now[agent].Partitions.Owned().Equal(placement.Of(4))
	})
	b.tell(4, has, func(p *receipt.Proposal) { p.Requester = "p9" })
	b.until("that it gives its slot", func(now map[string]identity.Identity) bool { return !now[agent].Assigned() })
	b.tell(2, receipt.Nothing(), nil)
	if !b.api.Await(t.Context(), func() bool {
		r, _ := receipt.Of(b.api.Get(apifake.Pods, agent), "Deployment/"+apifake.Worker)
		return r.State == receipt.Waits && r.Rank == 1
	}) {
		t.Error("it does not wait again")
	}
}

func TestAnAgentWorksByItselfWhileTheControllerIsAway(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	p := b.start(agent, nil)
	b.tell(3, receipt.Share{ID: 2}, nil)
	b.until("its id without a confirmation", has(2))
	if sent := b.api.Requests(); !slices.ContainsFunc(sent, func(r string) bool { return strings.HasPrefix(r, "GET pods?") }) {
		t.Errorf("it has listed no receipts: %v", sent)
	}
	p.kill()
	b.works(agent, nil)
	b.until("its id after a restart", has(2))
}

func TestAnAgentThatDiedSoonGivesItsSlotBackToAPodThatMadeRoom(t *testing.T) {
	for madeRoom, want := range map[bool]receipt.State{true: receipt.GaveUp, false: receipt.Locks} {
		b := newBench(t, 3)
		b.agent()
		p := b.start(agent, nil)
		b.tell(3, receipt.Share{ID: 2}, nil)
		first := b.lockOf(receipt.Share{ID: 2})
		p.kill()
		b.tell(3, receipt.Share{ID: 2}, func(p *receipt.Proposal) { p.MadeRoom = madeRoom })
		b.start(agent, nil)
		var now receipt.Receipt
		if !b.api.Await(t.Context(), func() bool {
			now, _ = receipt.Of(b.api.Get(apifake.Pods, agent), "Deployment/"+apifake.Worker)
			return now.Write != first.Write
		}) || now.State != want {
			t.Errorf("made room: %t: its receipt says %+v", madeRoom, now)
		}
		if madeRoom && now.Failures() != 1 {
			t.Errorf("it has failed %d times", now.Failures())
		}
	}
}

func TestAnAgentListsNothingWhileTheServerIsBusy(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	clk := testclock.NewFakeClock(time.Now())
	s := b.api.Store(t, clk)
	var asked, looks atomic.Int32
	var busy atomic.Bool
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if busy.Load() && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods/"+agent) {
			clk.Step(time.Second) // so slow is the answer
			looks.Add(1)
			b.ring()
		}
		return false
	})
	b.start(agent, func(o *allocator.Options) {
		o.Store, o.HandsOver = s, false
		o.Observer = on(func(event.Asked) {
			asked.Add(1)
			b.ring()
		})
	})
	mine := receipt.Share{ID: 2}
	b.tell(3, mine, nil)
	b.lockOf(mine)
	busy.Store(true)
	turns := func(n int32, requester string) { // it has taken in all that came before
		b.tell(3, mine, func(p *receipt.Proposal) { p.Requester = requester })
		b.until("its turn", func(map[string]identity.Identity) bool { return asked.Load() == n })
	}
	turns(1, "p7")
	clk.Step(3 * time.Second)
	missed := time.NewTicker(time.Second) // its timer began after the step, so only an event has it look at the clock
	defer missed.Stop()
	for n := 0; looks.Load() == 0; n++ {
		select {
		case <-b.said:
		case <-missed.C:
			b.api.Change(apifake.Pods, agent, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/" + strconv.Itoa(n)}) })
		}
	}
	turns(2, "p8")
	clk.Step(3 * time.Second)
	turns(3, "p9")
	b.confirm(mine, receipt.Confirmed{})
	b.until("its id", has(2))
	for _, sent := range b.api.Requests() {
		if strings.Contains(sent, receipt.OwnerLabel) {
			t.Errorf("it has listed receipts: %s", sent)
		}
	}
}

func TestAnAgentFollowsItsPodToAnotherOwner(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	b.start(agent, nil)
	b.tell(3, receipt.Share{ID: 2}, nil)
	b.until("its id", has(2))
	b.tell(5, receipt.Share{ID: 4}, func(p *receipt.Proposal) { p.Owner.Kind, p.Owner.Name = "StatefulSet", "other" })
	b.until("its id of the other owner", func(now map[string]identity.Identity) bool {
		return now[agent].Assigned() && now[agent].ID == 4 && now[agent].Owner.Name == "other"
	})
}

// It may write no receipt for the owner that it leaves, because nothing on the pod names that owner any more.
func TestAnAgentFollowsItsPodToAnotherOwnerAlthoughItsReceiptWasDamaged(t *testing.T) {
	for name, change := range map[string]func(*allocator.Options){"": nil, "strict": strict} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 3)
			b.agent()
			b.start(agent, change)
			b.tell(3, receipt.Share{ID: 2}, nil)
			b.until("its id", has(2))
			b.api.Change(apifake.Pods, agent, func(o *unstructured.Unstructured) {
				p, _ := receipt.ProposalOf(o)
				p.Owner.Kind, p.Owner.Name, p.Share.ID = "StatefulSet", "other", 1
				o.SetAnnotations(map[string]string{receipt.Key: "{", receipt.ProposalKey: p.Encode()})
			})
			b.until("its id of the other owner", func(now map[string]identity.Identity) bool {
				return now[agent].Assigned() && now[agent].ID == 1 && now[agent].Owner.Name == "other"
			})
		})
	}
}

// Its Deployment was deleted without its pods, so a ReplicaSet counts for a while; then the Deployment is back.
func TestAnAgentKeepsItsSlotWhileAnotherOwnerProposesTheSame(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	b.start(agent, nil)
	b.tell(3, receipt.Share{ID: 2}, nil)
	b.until("its id", has(2))
	b.await("the receipt says that it holds the slot", b.noted(false))
	before, lock := b.shows(agent), b.api.Get(apifake.Pods, agent).GetAnnotations()[receipt.Key]
	orphaned := func(p *receipt.Proposal) { p.Owner.Kind, p.Owner.Name = "ReplicaSet", "worker-1" }
	counts := func(count int) {
		b.until("the count", func(now map[string]identity.Identity) bool {
			is := now[agent]
			return is.Assigned() && is.Count == count && is.Token == before.Token && is.Owner == before.Owner
		})
	}
	b.tell(4, receipt.Nothing(), orphaned)
	counts(4)
	b.tell(5, receipt.Share{ID: 2}, orphaned)
	counts(5)
	b.tell(6, receipt.Share{ID: 2}, nil)
	counts(6)
	if now := b.api.Get(apifake.Pods, agent).GetAnnotations()[receipt.Key]; now != lock {
		t.Errorf("its receipt is %s, and was %s", now, lock)
	}
	b.tell(2, receipt.Nothing(), orphaned)
	b.until("that it gives a slot above the count", func(now map[string]identity.Identity) bool { return !now[agent].Assigned() })
}

// Otherwise a rolling update without surplus would wait for ever.
func TestAnAgentHandsOverTheSlotThatItKeepsOfAFormerOwner(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	b.start(agent, nil)
	b.tell(3, receipt.Share{ID: 2}, nil)
	b.until("its id", has(2))
	other := func(p *receipt.Proposal) { p.Owner.Kind, p.Owner.Name = "ReplicaSet", "worker-1" }
	b.tell(4, receipt.Share{ID: 2}, other)
	b.until("the count", func(now map[string]identity.Identity) bool { return now[agent].Assigned() && now[agent].Count == 4 })
	b.tell(4, receipt.Share{ID: 2}, func(p *receipt.Proposal) {
		other(p)
		p.Requester = "p7"
	})
	b.until("that it gives the slot", func(now map[string]identity.Identity) bool { return !now[agent].Assigned() })
}

// It would be a receipt of no owner, which the policy refuses.
func TestAnAgentThatWasToldNothingEndsWithoutAWrite(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	var waits atomic.Bool
	p := b.start(agent, func(o *allocator.Options) {
		o.Observer = on(func(event.Waiting) {
			waits.Store(true)
			b.ring()
		})
	})
	b.until("that it waits", func(map[string]identity.Identity) bool { return waits.Load() })
	p.release()
	for _, request := range b.api.Requests() {
		if strings.HasPrefix(request, "PATCH") {
			t.Errorf("it sent %s", request)
		}
	}
}

// Another program removes what the controller wrote, and damages the receipt: nothing on the pod names its owner, so the policy permits no receipt.
func TestAnAgentWhosePodNamesNoOwnerSendsNoReceipt(t *testing.T) {
	for name, before := range map[string]bool{"before it knows its owner": false, "while it has an id": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 3)
			b.agent()
			damage := func() {
				b.api.Change(apifake.Pods, agent, func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{receipt.Key: "{"}) })
			}
			if !before {
				damage()
			}
			var waits atomic.Bool
			b.start(agent, func(o *allocator.Options) {
				o.Observer = on(func(event.Waiting) {
					waits.Store(true)
					b.ring()
				})
			})
			if before {
				b.tell(3, receipt.Share{ID: 2}, nil)
				b.until("its id", has(2))
				waits.Store(false)
				damage()
			}
			b.until("that it waits", func(now map[string]identity.Identity) bool { return waits.Load() && !now[agent].Assigned() })
			if text := b.api.Get(apifake.Pods, agent).GetAnnotations()[receipt.Key]; text != "{" {
				t.Errorf("it wrote %s", text)
			}
			b.tell(3, receipt.Share{ID: 2}, nil)
			b.until("its id", has(2))
		})
	}
}

// waits starts the agent. What it returns reports whether the agent says that it waits for this.
func (b *bench) waits(change func(*allocator.Options)) func(text string) func(map[string]identity.Identity) bool {
	var waiting atomic.Value
	b.start(agent, func(o *allocator.Options) {
		o.Observer = on(func(e event.Waiting) {
			waiting.Store(e.Reason)
			b.ring()
		})
		change(o)
	})
	return func(text string) func(map[string]identity.Identity) bool {
		return func(map[string]identity.Identity) bool {
			said, _ := waiting.Load().(string)
			return strings.Contains(said, text)
		}
	}
}

func TestAStrictAgentSaysWhichLeaseItWaitsFor(t *testing.T) {
	b := newBench(t, 3)
	b.leases(t)
	b.agent()
	waits := b.waits(strict)
	b.tell(3, receipt.Share{ID: 2}, nil)
	b.until("what it waits for", waits("slot 2: pod lost has the Lease"))
}

func TestAnAgentOfWhichTheControllerSaysNothingWaits(t *testing.T) {
	b := newBench(t, 3)
	b.agent()
	waits := b.waits(func(*allocator.Options) {})
	b.tell(3, receipt.Share{ID: 2}, func(o *receipt.Proposal) { o.UID = "another pod's" })
	b.until("what it waits for", waits(receipt.ProposalKey))
	b.tell(3, receipt.Nothing(), func(o *receipt.Proposal) { o.Why = "no id is free for it yet" })
	b.until("what it waits for", waits("(no id is free for it yet)"))
	if id := b.shows(agent); id.Assigned() {
		t.Errorf("it shows %s", id)
	}
}
