package reconciler

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/invariant"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// If a decision were wrong, the controller ends before a program begins.
func TestAProgramBeginsOnlyUnderALockThatT3ShowedAlone(t *testing.T) {
	lock := func(pod string, id, number int) decision.Lock {
		return decision.Lock{Pod: pod, Text: pod, Runs: receipt.NoID, Receipt: receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: id}, Number: number}}
	}
	runs := func(pod string, id, number int) decision.Lock {
		return decision.Lock{Pod: pod, Text: pod, Runs: id, Number: number, Receipt: receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing()}}
	}
	own := lock("a", 1, 7)
	old := own
	old.Text = "old"
	damaged := lock("b", 1, 0)
	damaged.Receipt.State = receipt.Unreadable
	for what, c := range map[string]struct {
		locks  []decision.Lock
		begins bool
	}{
		"its own lock":                    {[]decision.Lock{own}, true},
		"also under it":                   {[]decision.Lock{own, runs("a", 1, 7)}, true},
		"also locks of others":            {[]decision.Lock{own, lock("b", 2, 8), runs("c", 3, 9), runs("d", receipt.NoID, 0)}, true},
		"no lock":                         {nil, false},
		"an older receipt":                {[]decision.Lock{old}, false},
		"another lock of the slot":        {[]decision.Lock{own, lock("b", 1, 0)}, false},
		"an unreadable lock of the slot":  {[]decision.Lock{damaged, own}, false},
		"a program with the id":           {[]decision.Lock{own, runs("b", 1, 0)}, false},
		"another lock of the number":      {[]decision.Lock{own, lock("b", 2, 7)}, false},
		"a program with the number":       {[]decision.Lock{runs("b", 2, 7), own}, false},
		"a lock of the slot of id 0 only": {[]decision.Lock{own, lock("b", 0, 0)}, true},
	} {
		p := passOf(t, nil)
		p.slots, p.ends = make(chan struct{}, 1), time.Unix(1, 0) // the check comes before any write, and none is sent
		p.metas["a"] = &podMeta{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{receipt.Key: "a"}}}
		p.world.Locks = c.locks
		func() {
			defer func() {
				if _, ended := recover().(invariant.BrokenError); ended == c.begins {
					t.Errorf("T3 showed %s: the controller ends: %v", what, ended)
				}
			}()
			if err := p.lock(t.Context(), decision.Decision{Begin: []decision.Begin{{Pod: "a", ID: 1, Gated: true, Number: 7}}}); err != nil {
				t.Error(err)
			}
		}()
	}
}

// BenchmarkAssertions compares the checks before 10,000 programs begin with the decision that lets them begin. A pass costs much more than both.
func BenchmarkAssertions(b *testing.B) {
	const pods = 10_000
	w := decision.World{Owner: decision.Owner{Owner: identity.Owner{Kind: "Deployment", Name: worker}, Count: pods, Replaces: true, Revision: "new", State: assignment.State{Slots: assignment.Slots{}}}, Now: time.Unix(1000, 0)}
	for i := range pods {
		name := "worker-5d9c7b6f4-" + strconv.Itoa(i)
		r := receipt.Receipt{UID: name, Owner: own, State: receipt.Locks, Share: receipt.Share{ID: i}, Write: "w"}
		w.Owner.State.Slots[i] = name
		w.Pods = append(w.Pods, decision.Pod{Pod: proposal.Pod{Name: name, UID: name, Owned: true, Controller: "new", Ordinal: proposal.NoOrdinal, Receipt: r}, Assigned: true, Gated: true, Text: name})
		w.Locks = append(w.Locks, decision.Lock{Pod: name, UID: name, Text: name, Version: "7", Receipt: r, Runs: receipt.NoID})
	}
	var deciding, checking time.Duration
	for b.Loop() {
		began := time.Now()
		d := decision.Decide(w)
		decided := time.Now()
		if len(d.Begin) != pods {
			b.Fatalf("%d of %d begin", len(d.Begin), pods)
		}
		shows := shownBy(w.Locks)
		for i := range d.Begin {
			if !shows.confirms(d.Begin[i], d.Begin[i].Pod) {
				b.Fatal("a right decision is refused")
			}
		}
		deciding += decided.Sub(began)
		checking += time.Since(decided)
	}
	b.ReportMetric(100*checking.Seconds()/deciding.Seconds(), "%of-deciding")
	b.ReportMetric(float64(checking.Nanoseconds())/float64(b.N)/pods, "ns/pod")
}
