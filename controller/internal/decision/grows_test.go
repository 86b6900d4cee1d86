package decision

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

// What a decision costs grows with the pods. To compare each two, or to work out a target for each, would cost sixteen times as much for four times the pods.
func TestADecisionAboutAgentsGrowsWithThem(t *testing.T) {
	spent := func(n int) float64 {
		w := agentsWorld(n)
		for i := range w.Pods { // half of them have yielded what they are to have
			p := &w.Pods[i]
			if i%2 == 0 {
				p.Receipt.Share.Partitions = placement.Set{}
			}
			w.Locks = append(w.Locks, Lock{Pod: p.Name, UID: p.UID, Text: p.Text, Receipt: p.Receipt})
		}
		return testing.AllocsPerRun(3, func() { Decide(w) })
	}
	if few, many := spent(250), spent(1000); many > 6*few {
		t.Errorf("a decision about 250 agents makes %.0f allocations, and one about 1000 makes %.0f", few, many)
	}
}
