package simulation

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// injector has a history's faults happen.
type injector struct {
	w      *world
	others []faultKind // what may happen while somebody is held up
	more   int         // how often it did
}

// schedule has the faults happen, and others of these kinds while somebody is held up.
func schedule(w *world, faults []Fault, kinds []faultKind) {
	in := &injector{w: w, others: slices.DeleteFunc(kinds, func(k faultKind) bool {
		return slices.Contains(k.families, Aimed) || slices.Contains(k.families, Steps)
	})}
	w.mischief = in
	all := map[string]faultKind{}
	for _, k := range faultKinds() {
		all[k.name] = k
	}
	for _, f := range faults {
		w.After(f.At, func() { in.inject(all[f.Name], f) })
	}
}

// inject has a fault happen now.
func (in *injector) inject(k faultKind, f Fault) {
	if in.w.quiet {
		return
	}
	in.w.Step("fault", f.String())
	in.w.faults[f.Name]++
	if k.excuses {
		in.w.witness.excuse()
	}
	if slices.Contains(k.families, RandomLoss) || slices.Contains(k.families, Steps) {
		in.w.witness.trouble()
	}
	k.inject(in.w, f, dice.From(f.Draw))
}

// manyMore bounds how many faults happen because somebody is held up.
const manyMore = 40

// another implements mischief: it has one of the history's faults happen now.
func (in *injector) another(d *dice.Dice) {
	if in.w.quiet || len(in.others) == 0 || in.more >= manyMore {
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

// damage implements mischief.
func (in *injector) damage(d *dice.Dice) { in.w.damage(d) }

// repair does what an operator has to do by hand.
func (w *world) repair() {
	w.Step("repair")
	if w.owner() == nil {
		w.createOwner(w.profile.Count, 1)
	}
	w.applyOwner() // starts tracking again, if somebody cleared managedFields
	for _, v := range w.server.Objects(object.Pods) {
		if !inWorkload(v.Object) {
			w.server.DeletePod(v.Name, w.profile.Grace) // it was debugged, and holds a slot
		}
	}
	w.witness.excuse()
}
