package faults

import (
	"slices"
	"testing"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/profile"
)

// mixes returns the mixes of many seeds, with all faults.
func mixes() []mix {
	const seeds = 2000
	out := make([]mix, 0, seeds)
	for seed := range uint64(seeds) {
		m, _ := drawMix(seed, profile.Draw(dice.Derive(seed, "world")), nil)
		out = append(out, m)
	}
	return out
}

func has(m mix, family string) bool {
	return slices.ContainsFunc(m.kinds, func(k kind) bool { return k.is(family) })
}

func TestNoMixDamagesReceiptsAndTheMap(t *testing.T) {
	for seed, m := range mixes() {
		if has(m, receipts) && has(m, foreign) {
			t.Errorf("seed %d has both", seed)
		}
	}
}

func TestEachKindOccursInAMix(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mixes() {
		for _, k := range m.kinds {
			seen[k.name] = true
		}
	}
	for _, k := range catalogue() {
		if !seen[k.name] {
			t.Errorf("no mix has %s", k.name)
		}
	}
}

func TestEachPairOfKindsThatMayMeetDoes(t *testing.T) {
	met := map[[2]string]bool{}
	for _, m := range mixes() {
		for _, a := range m.kinds {
			for _, b := range m.kinds {
				met[[2]string{a.name, b.name}] = true
			}
		}
	}
	for _, a := range catalogue() {
		for _, b := range catalogue() {
			never := a.is(receipts) && b.is(foreign) || a.is(foreign) && b.is(receipts) || a.only != nil && b.only != nil
			if !never && !met[[2]string{a.name, b.name}] {
				t.Errorf("no mix has %s and %s", a.name, b.name)
			}
		}
	}
}

func TestAMixHasOnlyWhatIsAskedFor(t *testing.T) {
	for seed := range uint64(200) {
		m, _ := drawMix(seed, profile.Draw(dice.Derive(seed, "world")), []string{"wipe", force})
		for _, k := range m.kinds {
			if k.name != "wipe" && !k.is(force) {
				t.Errorf("seed %d: %s was not asked for", seed, k.name)
			}
		}
		if m.heldUp {
			t.Errorf("seed %d: requests are held up", seed)
		}
	}
}
