package faults

import (
	"slices"
	"testing"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/profile"
)

// histories returns the chapters of many seeds, with all faults.
func histories() [][]chapter {
	const seeds = 700
	out := make([][]chapter, 0, seeds)
	for seed := range uint64(seeds) {
		out = append(out, drawChapters(seed, profile.Draw(dice.Derive(seed, "world")), nil))
	}
	return out
}

func TestEachKindOccursInAChapter(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range slices.Concat(histories()...) {
		for _, k := range c.kinds {
			seen[k.name] = true
		}
	}
	for _, k := range catalogue() {
		if !seen[k.name] {
			t.Errorf("no chapter has %s", k.name)
		}
	}
}

// The faults of a chapter happen in it, and in all but the first somebody may repair what was left behind.
func TestChaptersFollowOneAnother(t *testing.T) {
	repaired := 0
	for seed := range uint64(100) {
		p := profile.Draw(dice.Derive(seed, "world"))
		p.Chapters = 2
		for k, c := range drawChapters(seed, p, nil) {
			begins := time.Duration(k) * p.Chaos
			for _, f := range c.draw(begins, p) {
				if f.At < begins || f.At > begins+p.Chaos {
					t.Errorf("seed %d: %s is not in chapter %d, which begins at %s", seed, f, k, begins)
				}
				if f.Name == repairs && f.At == begins {
					repaired += k
				}
			}
		}
	}
	if repaired < 25 || repaired > 75 {
		t.Errorf("%d of 100 second chapters begin with a repair", repaired)
	}
}

func TestEachPairOfKindsThatMayMeetDoes(t *testing.T) {
	met := map[[2]string]bool{}
	for _, m := range slices.Concat(histories()...) {
		for _, a := range m.kinds {
			for _, b := range m.kinds {
				met[[2]string{a.name, b.name}] = true
			}
		}
	}
	for _, a := range catalogue() {
		for _, b := range catalogue() {
			never := a.only != nil && b.only != nil
			if !never && !met[[2]string{a.name, b.name}] {
				t.Errorf("no chapter has %s and %s", a.name, b.name)
			}
		}
	}
}

func TestAChapterHasOnlyWhatIsAskedFor(t *testing.T) {
	for seed := range uint64(100) {
		for _, c := range drawChapters(seed, profile.Draw(dice.Derive(seed, "world")), []string{"wipe", force}) {
			for _, k := range c.kinds {
				if k.name != "wipe" && !k.is(force) {
					t.Errorf("seed %d: %s was not asked for", seed, k.name)
				}
			}
			if c.heldUp {
				t.Errorf("seed %d: requests are held up", seed)
			}
		}
	}
}
