package simulation

import (
	"math"
	"time"
)

// dice is a small random source. Dice of equal names roll equal numbers, whatever happened before.
type dice struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

// derive returns dice of their own for what the words name.
func derive(seed uint64, words ...string) *dice {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := offset ^ mix(seed)
	for _, w := range words {
		for i := range len(w) {
			h = (h ^ uint64(w[i])) * prime
		}
		h = (h ^ 0xff) * prime
	}
	return &dice{state: mix(h)}
}

func mix(x uint64) uint64 {
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

func (d *dice) next() uint64 {
	d.state += golden
	return mix(d.state)
}

// float is in [0, 1).
func (d *dice) float() float64 { return float64(d.next()>>11) / (1 << 53) }

func (d *dice) chance(p float64) bool { return p > 0 && d.float() < p }

// below is in [0, n); 0 for an n of 0 or less.
func (d *dice) below(n int) int { return int(d.float() * float64(max(n, 0))) }

// between is in [low, high].
func (d *dice) between(low, high int) int { return low + d.below(high-low+1) }

// span is between low and high, to the nanosecond.
func (d *dice) span(low, high time.Duration) time.Duration {
	return low + time.Duration(d.float()*float64(high-low))
}

// tail has mean as its mean and now and then is many times as long.
func (d *dice) tail(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-d.float())*float64(mean)) + time.Microsecond
}

// pick returns one of the items. There must be one.
func pick[T any](d *dice, items []T) T { return items[d.below(len(items))] }
