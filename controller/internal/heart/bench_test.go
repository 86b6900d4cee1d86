package heart

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// agentsWorld has agents that hold all slots and divide 4096 partitions.
func agentsWorld(n int) World {
	w := World{Now: now(), Owner: Owner{
		Owner: identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"}, Namespace: "shop", Count: n, Revision: "new", Replaces: true, Limit: 1,
		State: assignment.State{Slots: assignment.Slots{}}, Wish: assignment.Wish{HasCount: true, Count: placement.MaxCount},
	}}
	for i := range n {
		p := Pod{Pod: proposal.Pod{
			Name: fmt.Sprintf("worker-7c6b5d9f8-%05d", i), UID: fmt.Sprintf("uid-%d", i), Created: now().Add(-time.Hour), Controller: "new", Owned: true,
			Ordinal: proposal.NoOrdinal, Receipt: receipt.Receipt{State: receipt.Locks, HandsOver: true, Write: strconv.Itoa(i), Share: receipt.Share{ID: i, Of: placement.MaxCount}},
		}, Agent: true, Text: strconv.Itoa(i)}
		w.Owner.State.Slots[i] = p.Name
		w.Pods = append(w.Pods, p)
	}
	row := Decide(w).Plan.Next.Row
	w.Owner.State.Row = row
	for i := range w.Pods {
		p := &w.Pods[i]
		p.Receipt.Share.Partitions = row.Owners[i]
	}
	return w
}

func (w *World) list() {
	w.Locks = nil
	for _, p := range w.Pods {
		w.Locks = append(w.Locks, Lock{Pod: p.Name, UID: p.UID, Text: p.Text, Receipt: p.Receipt})
	}
}

func (w *World) tellAll() {
	for _, t := range Decide(*w).Propose {
		for i := range w.Pods {
			if p := &w.Pods[i]; p.Name == t.Pod {
				p.Told, p.Proposal = true, t.Next
			}
		}
	}
}

// A decision about a thousand agents and 4096 partitions costs milliseconds.
func BenchmarkAgents(b *testing.B) {
	const n = 1000
	unconfirmed := agentsWorld(n)
	unconfirmed.list()
	calm := unconfirmed
	calm.Pods = append([]Pod{}, unconfirmed.Pods...)
	calm.tellAll()
	grown := calm
	grown.Pods = append([]Pod{}, calm.Pods...)
	grown.Owner.Count = n + n/2
	for _, p := range agentsWorld(n + n/2).Pods[n:] {
		p.Receipt.Share.Partitions = placement.Set{}
		grown.Pods = append(grown.Pods, p)
	}
	claims := calm
	claims.Locks, claims.Owner.State = nil, assignment.State{}
	claims.Pods = append([]Pod{}, calm.Pods...)
	for i := range claims.Pods {
		p := &claims.Pods[i]
		p.Told, p.Receipt = false, receipt.Receipt{Share: receipt.Nothing()}
	}
	// Half of what is to move has been yielded, and the other half has been given on.
	moving := grown
	moving.Pods = append([]Pod{}, grown.Pods...)
	moving.tellAll()
	for i := range moving.Pods {
		p := &moving.Pods[i]
		if p.Receipt.Share.Partitions = p.Receipt.Share.Partitions.Minus(p.Proposal.Yield); i%2 == 0 {
			p.Receipt.Share.Partitions = p.Receipt.Share.Partitions.Union(p.Proposal.Share.Partitions.Minus(p.Proposal.Yield))
		}
	}
	for name, w := range map[string]World{"confirm": unconfirmed, "calm": calm, "grown": grown, "claims": claims, "moving": moving} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Decide(w)
			}
		})
	}
}

// What a decision costs grows with the pods. To compare each two, or to work out a target for each, would cost sixteen times as much for four times the pods.
func TestADecisionAboutAgentsGrowsWithThem(t *testing.T) {
	spent := func(n int) float64 {
		w := agentsWorld(n)
		for i := range w.Pods { // half of them have yielded what they are to have
			if p := &w.Pods[i]; i%2 == 0 {
				p.Receipt.Share.Partitions = placement.Set{}
			}
		}
		w.list()
		return testing.AllocsPerRun(3, func() { Decide(w) })
	}
	if few, many := spent(250), spent(1000); many > 6*few {
		t.Errorf("a decision about 250 agents makes %.0f allocations, and one about 1000 makes %.0f", few, many)
	}
}
