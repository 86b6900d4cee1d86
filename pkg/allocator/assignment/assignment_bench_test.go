package assignment

import (
	"fmt"
	"testing"
	"time"
)

// sizes are the counts that benchmarks run at.
var sizes = []int{10, 100, 1000, 4000} //nolint:gochecknoglobals // a constant that Go cannot express

var benchTime = time.UnixMilli(1795219200123) //nolint:gochecknoglobals // a constant that Go cannot express

// benchState is an assignment of n slots, and as many hand-over requests as a quarter may be unavailable.
func benchState(n int) State {
	s := State{Slots: Slots{}, UIDs: Slots{}, Handover: Slots{}, Epoch: benchTime.UnixMilli()}
	for i := range n {
		s.UIDs[i] = fmt.Sprintf("%08x", i)
		s.Slots[i] = fmt.Sprintf("worker-7c6b5d9f8-%05d", i)
	}
	for i := range n / 4 {
		s.Handover[i] = fmt.Sprintf("worker-5d9c7b8f6d-%05d", i)
	}
	return s
}

// perPod runs what b measures at every size and reports its time per pod.
func perPod(b *testing.B, prepare func(n int) (measured func())) {
	b.Helper()
	for _, n := range sizes {
		measured := prepare(n)
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				measured()
			}
			b.ReportMetric(float64(b.Elapsed()/time.Nanosecond)/float64(b.N)/float64(n), "ns/pod")
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	perPod(b, func(n int) func() {
		s := benchState(n)
		return func() { s.Encode(DefaultKey, ownerUID) }
	})
}

func BenchmarkDecode(b *testing.B) {
	perPod(b, func(n int) func() {
		annotations := benchState(n).Encode(DefaultKey, ownerUID)
		return func() { Decode(annotations, DefaultKey, ownerUID, benchTime) }
	})
}

func BenchmarkParseSlots(b *testing.B) {
	perPod(b, func(n int) func() {
		text := benchState(n).Slots.Encode()
		return func() {
			if _, err := ParseSlots(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	perPod(b, func(n int) func() {
		annotations := benchState(n).Encode(DefaultKey, ownerUID)
		return func() { Seal(annotations, DefaultKey, ownerUID) }
	})
}

func BenchmarkCheckSize(b *testing.B) {
	perPod(b, func(n int) func() {
		s := benchState(n)
		annotations := s.Encode(DefaultKey, ownerUID)
		return func() {
			if err := RoomOn(annotations, DefaultKey).Check(s, SizeLimit); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A quarantine of every other slot has the most ranges that there can be.
func BenchmarkQuarantine(b *testing.B) {
	perPod(b, func(n int) func() {
		q := make(Quarantine, 0, n/2)
		for i := 0; i < n; i += 2 {
			q = append(q, Span{From: i, To: i, Epoch: benchTime.UnixMilli() - int64(i)})
		}
		return func() {
			if _, err := ParseQuarantine(q.Encode(), benchTime); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkParseReceipt(b *testing.B) {
	text := Receipt{UID: "b7f1a0c2-6c1f-4b53-9f0e-0e7d3a9d3c11", Owner: testOwner, ID: 3, Epoch: benchTime.UnixMilli(), HandsOver: true}.Encode()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseReceipt(text, benchTime); err != nil {
			b.Fatal(err)
		}
	}
}
