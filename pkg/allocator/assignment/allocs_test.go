package assignment

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Reading and writing an assignment allocates for its maps and texts, not for its entries: one
// allocation for each would be a thousand here.
func TestCodecAllocatesLittle(t *testing.T) {
	const pods = 1000
	s := benchState(pods)
	annotations := s.Encode()
	for name, tc := range map[string]struct {
		most float64
		do   func()
	}{
		"decode": {80, func() { Decode(annotations) }},
		"encode": {60, func() { s.Encode() }},
	} {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(5, tc.do); got > tc.most {
				t.Errorf("%s of %d pods makes %.0f allocations, more than %.0f", name, pods, got, tc.most)
			}
		})
	}
}

// scattered are n partitions, no two of which are neighbours.
func scattered(n int) placement.Set {
	all := make([]int, n)
	for i := range all {
		all[i] = 2 * i
	}
	return placement.Of(all...)
}

// owners are n owners of one partition each, no two of which are neighbours.
func owners(n int) placement.Owners {
	o := placement.Owners{}
	for id := range n {
		o[id] = placement.Of(2 * id)
	}
	return o
}

// spent returns how often do allocates, and how many bytes.
func spent(do func()) (times, bytes float64) {
	times = testing.AllocsPerRun(5, do)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return times, float64(after.TotalAlloc - before.TotalAlloc)
}

// An account that may write pods or workloads can make these texts large, and each pod reads them again and again. Four times the text is at most
// about four times the work, and not sixteen times.
func TestWorkGrowsWithTheTextThatIsRead(t *testing.T) {
	const few, many, most = 500, 2000, 6
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	slots := func(n int) string { return benchState(n).Slots.Encode() }
	for name, tc := range map[string]struct {
		text func(n int) string
		read func(text string) error
	}{
		"a map": {slots, func(text string) error { _, err := ParseSlots(text); return err }},
		"a map with spaces": {
			func(n int) string { return strings.ReplaceAll(slots(n), ",", ", ") },
			func(text string) error { _, err := ParseSlots(text); return err },
		},
		"a row": {
			func(n int) string {
				return Row{Count: placement.MaxCount, Strategy: "sticky", Owners: owners(n)}.Encode()
			},
			func(text string) error { _, err := parseRow(text); return err },
		},
		"a target": {
			func(n int) string { return owners(n).String() },
			func(text string) error { _, err := placement.ParseTarget(text, placement.MaxCount); return err },
		},
		"a set": {
			func(n int) string { return scattered(n).String() },
			func(text string) error { _, err := placement.Parse(text, placement.MaxCount); return err },
		},
		"a receipt": {
			func(n int) string {
				share := receipt.Share{Of: placement.MaxCount, Partitions: scattered(n)}
				return receipt.Receipt{UID: "u", Owner: "Deployment/worker", State: receipt.Locks, Share: share}.Encode()
			},
			func(text string) error { _, err := receipt.Parse(text); return err },
		},
	} {
		t.Run(name, func(t *testing.T) {
			short, long := tc.text(few), tc.text(many)
			times, bytes := spent(func() { must(tc.read(short)) })
			moreTimes, moreBytes := spent(func() { must(tc.read(long)) })
			if moreTimes > most*times || moreBytes > most*bytes {
				t.Errorf("%d bytes take %.0f allocations of %.0f bytes, and %d bytes take %.0f of %.0f", len(short), times, bytes, len(long), moreTimes, moreBytes)
			}
		})
	}
}

// benchState is an assignment of n slots, and as many hand-over requests as a quarter may be unavailable.
func benchState(n int) State {
	s := State{Slots: Slots{}, Handover: Slots{}}
	for i := range n {
		s.Slots[i] = fmt.Sprintf("worker-7c6b5d9f8-%05d", i)
	}
	for i := range n / 4 {
		s.Handover[i] = fmt.Sprintf("worker-5d9c7b8f6d-%05d", i)
	}
	return s
}
