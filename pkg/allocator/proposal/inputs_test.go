package proposal

import (
	"fmt"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// claimInput: all pods of a new owner wait.
func claimInput(n int) Input {
	in := Input{Count: n, Me: benchName(0), Now: t0}
	for i := range n {
		in.Pods = append(in.Pods, pod(benchName(i), i))
	}
	return in
}

func benchName(i int) string { return fmt.Sprintf("worker-7c6b5d9f8-%05d", i) }

// idleInput: every pod has its slot, and there is nothing to do.
func idleInput(n int) Input {
	in := claimInput(n)
	in.State.Slots = slots{}
	for i := range in.Pods {
		in.Pods[i] = in.Pods[i].says(receipt.Locks, i)
		in.State.Slots[i] = in.Pods[i].Name
	}
	return in
}

// replaceInput: half of the holders are dead, and as many new siblings wait.
func replaceInput(n int) Input {
	in := idleInput(n)
	for i := range n / 2 {
		in.Pods[i] = pod(benchName(i)+"-new", i)
	}
	in.Me = in.Pods[0].Name
	return in
}

// restoreInput: the map was wiped, and every pod has its receipt.
func restoreInput(n int) Input {
	in := idleInput(n)
	in.State = assignment.State{}
	return in
}

// handoverInput: a new revision of as many pods asks for the slots of the old one, half of them at once.
func handoverInput(n int) Input {
	in := idleInput(n)
	for i := range n {
		in.Pods[i].Receipt.HandsOver = true
		p := pod(benchName(i)+"-new", 0).says(receipt.Waits, receipt.NoID)
		p.Controller = "rs-2"
		in.Pods = append(in.Pods, p)
	}
	in.Me = in.Pods[n].Name
	in.Rollout = Rollout{Current: true, MaxUnavailable: max(1, n/2)}
	return in
}
