package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// sizes are the counts that benchmarks run at.
var sizes = []int{10, 100, 1000, 4000} //nolint:gochecknoglobals // a constant that Go cannot express

// workloads builds the inputs whose plans are measured, each of n slots.
var workloads = []struct { //nolint:gochecknoglobals // a constant that Go cannot express
	name  string
	build func(n int) Input
}{
	{"claim", claimInput},
	{"idle", idleInput},
	{"replace", replaceInput},
	{"reuse", reuseInput},
	{"restore", restoreInput},
	{"strict", strictInput},
	{"handover", handoverInput},
}

func benchName(i int) string { return fmt.Sprintf("worker-7c6b5d9f8-%05d", i) }

// claimInput: all pods of a new owner wait.
func claimInput(n int) Input {
	in := Input{Count: n, Me: benchName(0), Now: t0}
	for i := range n {
		in.Pods = append(in.Pods, pod(benchName(i), i))
	}
	return in
}

// idleInput: every pod has its slot, and there is nothing to do.
func idleInput(n int) Input {
	in := claimInput(n)
	in.Trust = assignment.Clean
	in.State = assignment.State{Slots: slots{}, UIDs: slots{}, Epoch: 100}
	for i := range in.Pods {
		in.Pods[i].UID = fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)
		in.State.Slots[i], in.State.UIDs[i] = in.Pods[i].Name, assignment.ShortUID(in.Pods[i].UID)
		holds(i)(&in.Pods[i])
	}
	return in
}

// replaceInput: half of the holders are dead, and as many new siblings wait.
func replaceInput(n int) Input {
	in := idleInput(n)
	for i := range n / 2 {
		in.Pods[i].Name += "-new"
		in.Pods[i].UID = "new-" + in.Pods[i].UID
		in.Pods[i].Receipt = nil
	}
	in.Me = in.Pods[0].Name
	return in
}

// reuseInput: as replaceInput, with the dead pods' names (StatefulSet).
func reuseInput(n int) Input {
	in := idleInput(n)
	for i := range in.Pods {
		in.Pods[i].Ordinal = i
	}
	for i := range n / 2 {
		in.Pods[i].UID = "new-" + in.Pods[i].UID
		in.Pods[i].Receipt = nil
	}
	return in
}

// restoreInput: somebody wiped the map, and every pod has its receipt.
func restoreInput(n int) Input {
	in := idleInput(n)
	in.Trust, in.State = assignment.Absent, assignment.State{}
	return in
}

// strictInput: as replaceInput in strict mode. Every other slot goes into quarantine, which is the most
// ranges that there can be.
func strictInput(n int) Input {
	in := idleInput(n)
	in.State.FenceAfter, in.FenceAfter = 30*time.Second, 30*time.Second
	for i := range in.Pods {
		in.Pods[i].Receipt.FenceAfter = 30 * time.Second
		if i%2 == 1 {
			in.Pods[i].Name += "-new"
			in.Pods[i].UID += "-new"
			in.Pods[i].Receipt = nil
		}
	}
	return in
}

// handoverInput: a new revision of as many pods asks for the slots of the old one, half of them at once.
func handoverInput(n int) Input {
	in := idleInput(n)
	for i := range n {
		in.Pods[i].Receipt.HandsOver = true
		in.Pods = append(in.Pods, pod(benchName(i)+"-new", 0, otherRevision))
	}
	in.Me = in.Pods[n].Name
	in.Rollout = Rollout{Current: true, MaxUnavailable: max(1, n/2)}
	return in
}

func BenchmarkPlan(b *testing.B) {
	for _, w := range workloads {
		for _, n := range sizes {
			in := w.build(n)
			b.Run(fmt.Sprintf("%s/pods=%d", w.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Plan(in)
				}
				b.ReportMetric(float64(b.Elapsed()/time.Nanosecond)/float64(b.N)/float64(n), "ns/pod")
			})
		}
	}
}
