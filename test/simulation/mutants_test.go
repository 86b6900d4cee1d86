package simulation

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

//nolint:gochecknoglobals // flags
var (
	mutantsFlag     = flag.String("mutants", "", "hunt these mutants, separated by commas, or all")
	mutantSeedsFlag = flag.Int("mutant-seeds", 3000, "how many seeds a mutant may survive")
	hintsFlag       = flag.Bool("hints", true, "obey the mutants' faults and profile; without, each mutant meets the histories that CI plays, or those of -faults and -profile")
)

// TestMutants shows that the checkers can fail: each mutant of the production code must be caught.
func TestMutants(t *testing.T) {
	if *mutantsFlag == "" {
		t.Skip("-mutants=all")
	}
	root, all := mutants(t)
	work := make(chan mutant)
	var running sync.WaitGroup
	for range cmp.Or(*workersFlag, runtime.NumCPU()) {
		running.Go(func() {
			for m := range work {
				hunt(t, m, root)
			}
		})
	}
	for _, m := range all {
		if hunted(m) {
			work <- m
		}
	}
	close(work)
	running.Wait()
}

// mutants returns the root of the repository and all mutants.
func mutants(t *testing.T) (root string, all []mutant) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	if all, err = parseMutants(string(text)); err != nil {
		t.Fatal(err)
	}
	return root, all
}

// hunted reports whether -mutants asks for m.
func hunted(m mutant) bool {
	return *mutantsFlag == "all" || slices.Contains(strings.Split(*mutantsFlag, ","), m.name)
}

func hunt(t *testing.T, m mutant, root string) {
	t.Helper()
	if !*hintsFlag {
		m.faults, m.profile = *faultsFlag, *profileFlag
	}
	dir := filepath.Join(t.TempDir(), m.name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Error(err)
		return
	}
	c, err := m.hunt(t.Context(), root, dir, *firstFlag, *mutantSeedsFlag)
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
		return
	}
	t.Log(c.row(m))
	if c.seeds == 0 {
		t.Errorf("%s is not caught by %d seeds", m.name, *mutantSeedsFlag)
	}
}

// TestMutantsApply keeps the mutants in step with the code.
func TestMutantsApply(t *testing.T) {
	root, all := mutants(t)
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			if m.why == "" || len(m.edits) == 0 {
				t.Error("it does not say why, or what")
			}
			if _, err := m.changed(root); err != nil {
				t.Error(err)
			}
		})
	}
}
