package simulation

import (
	"os"
	"testing"
)

//nolint:gochecknoglobals // flags
var suite = &Suite{
	Package: "github.com/idalloc/idalloc/test/simulation", Repository: "../..", Command: "go test ./test/simulation", Seeds: 150,
}

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }

// TestSimulation plays seeds and fails at the first promise that was broken, with the seed that shows it again.
func TestSimulation(t *testing.T) { suite.Simulation(t) }

// TestOneSeedOneHistory plays the same seeds in several programs, in another order, and compares every byte of their histories.
func TestOneSeedOneHistory(t *testing.T) { suite.OneSeedOneHistory(t) }

// TestPlay plays seeds in this program, one after the other. TestSimulation runs it in several.
func TestPlay(t *testing.T) { suite.Play(t) }

// TestMutants shows that the checkers can fail: each mutant of the production code must be caught.
func TestMutants(t *testing.T) { suite.Mutants(t) }

// TestMutantsApply keeps the mutants in step with the code.
func TestMutantsApply(t *testing.T) { suite.MutantsApply(t) }
