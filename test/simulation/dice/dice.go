package dice

import (
	"math"
	"slices"
	"time"
)

// Dice is a small random source. Dice of equal names roll equal numbers, whatever happened before.
type Dice struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

// Derive returns dice of their own for what the words name.
func Derive(seed uint64, words ...string) *Dice {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := offset ^ mix(seed)
	for _, w := range words {
		for i := range len(w) {
			h = (h ^ uint64(w[i])) * prime
		}
		h = (h ^ 0xff) * prime
	}
	return &Dice{state: mix(h)}
}

// From returns the dice of a draw that was kept.
func From(draw uint64) *Dice { return &Dice{state: draw} }

func mix(x uint64) uint64 {
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// Next is any number.
func (d *Dice) Next() uint64 {
	d.state += golden
	return mix(d.state)
}

// Float is in [0, 1).
func (d *Dice) Float() float64 { return float64(d.Next()>>11) / (1 << 53) }

// Chance is true with the probability p. Without a chance it does not roll.
func (d *Dice) Chance(p float64) bool { return p > 0 && d.Float() < p }

// Below is in [0, n); 0 for an n of 0 or less.
func (d *Dice) Below(n int) int { return int(d.Float() * float64(max(n, 0))) }

// Between is in [low, high].
func (d *Dice) Between(low, high int) int { return low + d.Below(high-low+1) }

// Span is between low and high, to the nanosecond.
func (d *Dice) Span(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Float()*float64(high-low))
}

// Tail has mean as its mean and now and then is many times as long.
func (d *Dice) Tail(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-d.Float())*float64(mean)) + time.Microsecond
}

// Pick returns one of the items. There must be one.
func Pick[T any](d *Dice, items []T) T { return items[d.Below(len(items))] }

// Weighted picks an index, each as often as its weight says.
func Weighted(d *Dice, weights []float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	at := d.Float() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// Sample returns n of the items in a drawn order, or all if there are fewer.
func Sample[T any](d *Dice, items []T, n int) []T {
	items = slices.Clone(items)
	for i := range items {
		j := i + d.Below(len(items)-i)
		items[i], items[j] = items[j], items[i]
	}
	return items[:min(n, len(items))]
}
