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
	m, d := drawMix(seed, p, names)
	if len(m.kinds) == 0 {
		return nil
	}
	n := d.Between(1, 14)
	if d.Chance(0.25) || p.Crowded {
		n = d.Between(15, 40)
	}
	n = max(n, min(len(m.kinds)*d.Between(1, 3), 40)) // so that those meet which a history has
	long := d.Chance(0.3)                             // what lasts has time to meet others
	out := make([]Fault, 0, n+1)
	if m.heldUp {
		out = append(out, Fault{Name: holdUps, At: 1, Lasts: p.Chaos, Draw: d.Next()})
	}
	for range n {
		k := m.kinds[dice.Weighted(d, m.rates)]
		f := Fault{Name: k.name, At: d.Span(0, p.Chaos), Draw: d.Next()}
		if k.lasts > 0 {
			f.Lasts = d.Span(time.Millisecond, k.lasts)
			if long {
				f.Lasts = k.lasts
			}
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

// mix is which kinds of faults a history has, and how often each happens beside the others.
type mix struct {
	kinds []kind
	rates []float64
	// heldUp says that requests are held up all the time.
	heldUp bool
}

// drawMix draws a history's mix. It returns the dice that are to draw the faults.
func drawMix(seed uint64, p profile.Profile, names []string) (m mix, d *dice.Dice) {
	d = dice.Derive(seed, "faults")
	if len(names) == 0 && d.Chance(0.4) {
		m.kinds = someFamilies(d, p)
	} else {
		m.kinds = someKinds(d, p, names)
		m.heldUp = p.Crowded && len(names) == 0
	}
	for _, k := range m.kinds {
		rate := float64(d.Tail(time.Second))
		if k.name == holdUps {
			rate *= 3
		}
		m.rates = append(m.rates, rate)
	}
	return m, d
}

// someKinds draws kinds without regard to their families.
func someKinds(d *dice.Dice, p profile.Profile, names []string) []kind {
	without := either(d)
	var kinds []kind
	for _, k := range catalogue() {
		// What waits for one moment is rare, unless it is asked for.
		rare := len(names) == 0 && slices.Contains(k.families, aimed) && d.Chance(0.6)
		if k.suits(p) && !slices.Contains(k.families, without) && selected(k, names) && !rare {
			kinds = append(kinds, k)
		}
	}
	if p.Crowded && len(names) == 0 && d.Chance(0.3) { // who writes, and who comes and goes
		kinds = slices.DeleteFunc(kinds, func(k kind) bool { return !k.is(foreign, life, receipts) })
	}
	kinds = dice.Sample(d, kinds, dice.Pick(d, []int{d.Between(1, 3), d.Between(4, 12), len(kinds) / 2, len(kinds) * 2 / 3}))
	// What holds requests up makes more of all others.
	if i := slices.IndexFunc(catalogue(), func(k kind) bool { return k.name == holdUps }); len(names) == 0 && d.Chance(0.6) {
		kinds = append(slices.DeleteFunc(kinds, func(k kind) bool { return k.name == holdUps }), catalogue()[i])
	}
	return kinds
}

// someFamilies draws one to three groups of families, and kinds of these alone: those of one family go together well.
func someFamilies(d *dice.Dice, p profile.Profile) []kind {
	drawn := dice.Sample(d, [][]string{
		{randomLoss}, {randomKillMinor, randomKillMajor, randomKillFixed}, {randomSuspendMinor, randomSuspendMajor, randomSuspendFixed},
		{foreign}, {receipts}, {access}, {life}, {force}, {aimed}, {aimed}, {steps},
	}, d.Between(1, 3))
	var kinds []kind
	for _, k := range catalogue() {
		if k.suits(p) && slices.ContainsFunc(drawn, func(families []string) bool { return k.is(families...) }) {
			kinds = append(kinds, k)
		}
	}
	if slices.ContainsFunc(kinds, func(k kind) bool { return k.is(foreign) }) && slices.ContainsFunc(kinds, func(k kind) bool { return k.is(receipts) }) {
		without := either(d)
		kinds = slices.DeleteFunc(kinds, func(k kind) bool { return k.is(without) })
	}
	return dice.Sample(d, kinds, d.Between(1, 8))
}

// either draws which of the two families that never meet a history does not have.
func either(d *dice.Dice) string {
	if d.Chance(0.5) {
		return foreign
	}
	return receipts
}

func selected(k kind, names []string) bool {
	if len(names) == 0 {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == k.name || slices.ContainsFunc(k.families, func(f string) bool { return f == n || strings.HasPrefix(f, n+"-") })
	})
}
