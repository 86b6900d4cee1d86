package placement

import (
	"fmt"
	"slices"
	"testing"
)

// largeInput is an input with members 0 to n-1, after a fresh start.
func largeInput(partitions, n int) Input {
	in := Input{Partitions: partitions, Count: n, Members: make([]int, n)}
	for i := range n {
		in.Members[i] = i
	}
	in.Owners = Sticky(in)
	return in
}

func BenchmarkSticky(b *testing.B) {
	for _, size := range []struct{ partitions, members int }{{64, 4}, {MaxCount, 300}, {50_000, 1_000}, {1_000_000, 2_000}} {
		in := largeInput(size.partitions, size.members)
		fresh, one, half, rest := in, in, in, in
		fresh.Owners = nil
		one.Members = slices.Concat(in.Members, []int{size.members})
		half.Members = in.Members[:size.members/2]
		for _, c := range []struct {
			name string
			in   Input
		}{{"fresh", fresh}, {"one more", one}, {"half go", half}, {"nothing to do", rest}} {
			b.Run(fmt.Sprintf("%d x %d/%s", size.partitions, size.members, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Sticky(c.in)
				}
			})
		}
	}
}

func BenchmarkText(b *testing.B) {
	o := largeInput(MaxCount, 300).Owners
	text := o.String()
	b.Run("print", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			_ = o.String()
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := ParseOwners(text, MaxCount); err != nil {
				b.Fatal(err)
			}
		}
	})
}
