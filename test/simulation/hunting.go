package simulation

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Mutants shows that the checkers can fail: each mutant of the production code must be caught.
func (s *Suite) Mutants(t *testing.T) {
	t.Helper()
	if s.mutants == "" {
		t.Skip("-mutants=all")
	}
	root, all := s.readMutants(t)
	work := make(chan mutant)
	var running sync.WaitGroup
	for range cmp.Or(s.workers, runtime.NumCPU()) {
		running.Go(func() {
			for m := range work {
				s.hunt(t, m, root)
			}
		})
	}
	for _, m := range all {
		if s.hunted(m) {
			work <- m
		}
	}
	close(work)
	running.Wait()
}

// readMutants returns the root of the repository and all mutants.
func (s *Suite) readMutants(t *testing.T) (root string, all []mutant) {
	t.Helper()
	root, err := filepath.Abs(s.Repository)
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
func (s *Suite) hunted(m mutant) bool {
	return s.mutants == "all" || slices.Contains(strings.Split(s.mutants, ","), m.name)
}

func (s *Suite) hunt(t *testing.T, m mutant, root string) {
	t.Helper()
	if !s.hints {
		m.faults, m.profile = s.faults, s.profile
	}
	dir := filepath.Join(t.TempDir(), m.name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Error(err)
		return
	}
	c, err := s.huntIn(t.Context(), m, root, dir)
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
		return
	}
	t.Log(c.row(m))
	if c.seeds == 0 {
		t.Errorf("%s is not caught by %d seeds", m.name, s.mutantSeeds)
	}
}

// MutantsApply keeps the mutants in step with the code.
func (s *Suite) MutantsApply(t *testing.T) {
	t.Helper()
	root, all := s.readMutants(t)
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
