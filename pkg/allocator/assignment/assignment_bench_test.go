package assignment

import (
	"fmt"
	"testing"
	"time"
)

// sizes are the counts that benchmarks run at.
var sizes = []int{10, 100, 1000, 4000} //nolint:gochecknoglobals // a constant that Go cannot express

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
		return func() { s.Encode() }
	})
}

func BenchmarkDecode(b *testing.B) {
	perPod(b, func(n int) func() {
		annotations := benchState(n).Encode()
		return func() { Decode(annotations) }
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

func BenchmarkCheckSize(b *testing.B) {
	perPod(b, func(n int) func() {
		s := benchState(n)
		annotations := s.Encode()
		return func() {
			if err := RoomOn(annotations).Check(s, SizeLimit); err != nil {
				b.Fatal(err)
			}
		}
	})
}
