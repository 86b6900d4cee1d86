package simulation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The others would never get their turn.
func TestAMutantThatDoesNotEndIsCaught(t *testing.T) {
	program := filepath.Join(t.TempDir(), "endless")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1d\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	got, err := catch(t.Context(), program, options{seeds: 3, first: 7, patience: time.Millisecond})
	if err != nil || got.seeds != 1 || got.seed != 7 || !strings.Contains(got.how, "did not end") {
		t.Errorf("%+v, %v", got, err)
	}
}
