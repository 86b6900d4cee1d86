package faults

import (
	"slices"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/profile"
)

// Fault is one thing that goes wrong. A list of them and a seed are a history.
type Fault struct {
	Name string        `json:"name"`
	At   time.Duration `json:"at"`
	// Lasts is for how long, where it has an end.
	Lasts time.Duration `json:"lasts"`
	// Draw seeds what the fault still has to choose.
	Draw uint64 `json:"draw"`
}

// String returns the fault for people: name@from+length.
func (f Fault) String() string {
	s := f.Name + "@" + f.At.Round(time.Millisecond).String()
	if f.Lasts > 0 {
		s += "+" + f.Lasts.Round(time.Millisecond).String()
	}
	return s
}

// Draw draws a list of faults. names selects kinds or families; empty is all. Damage to receipts and to
// the map never meet in one history: who changes both at once is on his own (docs/protocol.md, A4).
//
// Each history has a subset of the kinds, and each kind a rate of its own: what keeps others from happening is missing in some
// histories, and what has to meet is frequent in some (Groce et al., Swarm testing, ISSTA 2012).
func Draw(seed uint64, p profile.Profile, names []string) []Fault {
	kinds, rates, d := drawKinds(seed, p, names)
	if len(kinds) == 0 {
		return nil
	}
	n := d.Between(1, 14)
	if d.Chance(0.25) || p.Crowded {
		n = d.Between(15, 40)
	}
	n = max(n, min(len(kinds)*d.Between(1, 3), 40)) // so that those meet which a history has
	out := make([]Fault, 0, n+1)
	if p.Crowded && len(names) == 0 {
		out = append(out, Fault{Name: holdUps, At: 1, Lasts: p.Chaos, Draw: d.Next()})
	}
	for range n {
		k := kinds[dice.Weighted(d, rates)]
		f := Fault{Name: k.name, At: d.Span(0, p.Chaos), Draw: d.Next()}
		if k.lasts > 0 {
			f.Lasts = d.Span(time.Millisecond, k.lasts)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

// drawKinds draws which kinds of faults a history has, and how often each happens beside the others.
func drawKinds(seed uint64, p profile.Profile, names []string) (kinds []kind, rates []float64, d *dice.Dice) {
	d = dice.Derive(seed, "faults")
	without := receipts
	if d.Chance(0.3) {
		without = foreign
	}
	for _, k := range catalogue() {
		// What waits for one moment is rare, unless it is asked for.
		rare := len(names) == 0 && slices.Contains(k.families, aimed) && d.Chance(0.6)
		if (k.only == nil || k.only(p)) && !slices.Contains(k.families, without) && selected(k, names) && !rare {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil, nil, d
	}
	if p.Crowded && len(names) == 0 && d.Chance(0.5) { // who writes, and who comes and goes
		kinds = slices.DeleteFunc(kinds, func(k kind) bool {
			return !slices.Contains(k.families, foreign) && !slices.Contains(k.families, life) && !slices.Contains(k.families, receipts)
		})
	}
	kinds = dice.Sample(d, kinds, dice.Pick(d, []int{d.Between(1, 3), d.Between(3, 8), d.Between(6, 14), len(kinds) / 2}))
	// What holds requests up makes more of all others.
	if i := slices.IndexFunc(catalogue(), func(k kind) bool { return k.name == holdUps }); len(names) == 0 && d.Chance(0.6) {
		kinds = append(slices.DeleteFunc(kinds, func(k kind) bool { return k.name == holdUps }), catalogue()[i])
	}
	for _, k := range kinds {
		rate := float64(d.Tail(time.Second))
		if k.name == holdUps {
			rate *= 3
		}
		rates = append(rates, rate)
	}
	return kinds, rates, d
}

func selected(k kind, names []string) bool {
	if len(names) == 0 {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == k.name || slices.ContainsFunc(k.families, func(f string) bool { return f == n || strings.HasPrefix(f, n+"-") })
	})
}
