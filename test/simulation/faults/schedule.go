package faults

import (
	"math"
	"slices"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// injector has a history's faults happen.
type injector struct {
	w      *world.World
	others []kind // what may happen in this chapter beside a fault, and while a process is held up
	more   int    // how often it did
	// aftermath is the chance that another fault follows each, after about so long.
	aftermath float64
	soon      time.Duration
}

// Schedule has the faults happen. The names are those that they were drawn from: others of their kinds happen while a process is
// held up.
func Schedule(w *world.World, faults []Fault, names []string) {
	d := dice.Derive(w.Seed, "aftermath")
	in := &injector{w: w}
	for k, c := range drawChapters(w.Seed, w.Profile, names) {
		w.After(time.Duration(k)*w.Profile.Chaos, func() {
			in.others, in.more = slices.DeleteFunc(c.kinds, func(k kind) bool { return k.is(aimed, steps) }), 0
		})
	}
	in.aftermath = dice.Pick(d, []float64{0, 0.3, 0.6, 0.8})
	in.soon = time.Duration(math.Pow(10, 1+3*d.Float())) * time.Millisecond // 10 ms to 10 s
	w.Clings = dice.Pick(d, []float64{0, 0.5, 0.9})
	w.Mischief = in
	all := map[string]kind{}
	for _, k := range catalogue() {
		all[k.name] = k
	}
	for _, f := range faults {
		w.After(f.At, func() {
			in.inject(all[f.Name], f)
			d := dice.Derive(f.Draw, "aftermath")
			for at := d.Tail(in.soon); d.Chance(in.aftermath); at += d.Tail(in.soon) {
				w.After(at, func() { in.Another(d) })
			}
		})
	}
}

// inject has a fault happen now.
func (in *injector) inject(k kind, f Fault) {
	if in.w.Quiet {
		return
	}
	in.w.Step("fault", f.String())
	in.w.Faults[f.Name]++
	if k.excuses {
		in.w.Witness.Excuse()
	}
	if slices.Contains(k.families, randomLoss) || slices.Contains(k.families, steps) {
		in.w.Witness.Trouble()
	}
	k.inject(in.w, f, dice.From(f.Draw))
}

// manyMore bounds how many faults of a chapter happen because a process is held up.
const manyMore = 40

// Another implements mischief: it has one of the history's faults happen now.
func (in *injector) Another(d *dice.Dice) {
	if in.w.Quiet || len(in.others) == 0 || in.more >= manyMore {
		return
	}
	in.more++
	k := dice.Pick(d, in.others)
	f := Fault{Name: k.name, At: in.w.Now(), Draw: d.Next()}
	if k.lasts > 0 {
		f.Lasts = d.Span(time.Millisecond, k.lasts)
	}
	in.inject(k, f)
}

// Damage implements mischief.
func (in *injector) Damage(d *dice.Dice) { damage(in.w, d) }

// Repair does what an operator has to do by hand.
func Repair(w *world.World) {
	w.Step("repair")
	operate(w)
	w.Witness.Excuse()
}

// operate does what only an operator can do: it brings nodes back, and the owner, and ends what no user wants.
func operate(w *world.World) {
	for _, n := range w.Nodes {
		if n.Lost {
			w.BringBack(n)
		}
	}
	if w.Owner() == nil {
		w.CreateOwner(w.Profile.Count, 1)
	}
	w.WantPartitions(w.Profile.Partitions)
	for _, v := range w.Server.Objects(object.Pods) {
		if !world.InWorkload(v.Object) {
			w.Server.DeletePod(v.Name, w.Profile.Grace) // it was debugged, and holds a slot
		}
	}
}
