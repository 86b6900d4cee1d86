package faults

import (
	"slices"
	"strconv"
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

// Draw draws a list of faults. names selects kinds or families; empty is all.
//
// A history has chapters. Each chapter has a random subset of the kinds, and each kind a rate of its own: what keeps others from happening is
// missing in some, and what has to meet is frequent in some (Groce et al., Swarm testing, ISSTA 2012). What one chapter leaves behind
// the next one finds, unless an operator repairs it between them.
func Draw(seed uint64, p profile.Profile, names []string) []Fault {
	chapters := drawChapters(seed, p, names)
	lists := make([][]Fault, len(chapters))
	for k, c := range chapters {
		lists[k] = c.draw(time.Duration(k)*p.Chaos, p)
	}
	return slices.Concat(lists...)
}

// chapter is which kinds of faults a part of a history has, and how often each happens beside the others.
type chapter struct {
	kinds []kind
	rates []float64
	// heldUp says that requests are held up all the time.
	heldUp bool
	// repaired says that an operator repairs what the chapter before left behind.
	repaired bool
	// dice draw its faults.
	dice *dice.Dice
}

// draw draws a chapter's faults, which begins at this time.
func (c chapter) draw(begins time.Duration, p profile.Profile) []Fault {
	if len(c.kinds) == 0 {
		return nil
	}
	d := c.dice
	n := d.Between(1, 14)
	if d.Chance(0.25) || p.Crowded {
		n = d.Between(15, 40)
	}
	n = max(n, min(len(c.kinds)*d.Between(1, 3), 40)) // so that those meet which a chapter has
	long := d.Chance(0.3)                             // what lasts has time to meet others
	out := make([]Fault, 0, n+2)
	if c.repaired {
		out = append(out, Fault{Name: repairs, At: begins, Draw: d.Next()})
	}
	if c.heldUp {
		out = append(out, Fault{Name: holdUps, At: begins + 1, Lasts: p.Chaos, Draw: d.Next()})
	}
	for range n {
		k := c.kinds[dice.Weighted(d, c.rates)]
		f := Fault{Name: k.name, At: begins + d.Span(0, p.Chaos), Draw: d.Next()}
		if k.lasts > 0 {
			f.Lasts = d.Span(time.Millisecond, k.lasts)
			if long {
				f.Lasts = k.lasts
			}
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

// drawChapters draws what kinds of faults the chapters of a history have.
func drawChapters(seed uint64, p profile.Profile, names []string) []chapter {
	out := make([]chapter, 0, p.Chapters)
	for k := range p.Chapters {
		d := dice.Derive(seed, "faults"+strconv.Itoa(k))
		c := chapter{dice: d, repaired: k > 0 && d.Chance(0.5)}
		if len(names) == 0 && d.Chance(0.4) {
			c.kinds = someFamilies(d, p)
		} else {
			c.kinds = someKinds(d, p, names)
			c.heldUp = p.Crowded && len(names) == 0
		}
		for _, k := range c.kinds {
			rate := float64(d.Tail(time.Second))
			if k.name == holdUps {
				rate *= 3
			}
			c.rates = append(c.rates, rate)
		}
		out = append(out, c)
	}
	return out
}

// someKinds draws kinds without regard to their families.
func someKinds(d *dice.Dice, p profile.Profile, names []string) []kind {
	var kinds []kind
	for _, k := range catalogue() {
		// What waits for one moment is rare, unless it is asked for.
		rare := len(names) == 0 && slices.Contains(k.families, aimed) && d.Chance(0.6)
		if k.suits(p) && selected(k, names) && !rare {
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
	return dice.Sample(d, kinds, d.Between(1, 8))
}

func selected(k kind, names []string) bool {
	if len(names) == 0 {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == k.name || slices.ContainsFunc(k.families, func(f string) bool { return f == n || strings.HasPrefix(f, n+"-") })
	})
}
