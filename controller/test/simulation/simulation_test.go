package simulation_test

import (
	"log"
	"os"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/idalloc/idalloc/controller/test/simulation"
	"github.com/idalloc/idalloc/controller/test/simulation/policies"
	peers "github.com/idalloc/idalloc/test/simulation"
)

//nolint:gochecknoglobals // flags
var suite = &peers.Suite{
	Package: "github.com/idalloc/idalloc/controller/test/simulation", Repository: "../../..", Command: "go -C controller test ./test/simulation", Seeds: 10,
	Controller: simulation.Control,
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	shipped, err := policies.Shipped("../../../config")
	if err != nil {
		log.Fatal(err)
	}
	suite.Policies = shipped.Refuses
	os.Exit(suite.Main(m))
}

// TestSimulation plays seeds and fails at the first promise that was broken, with the seed that shows it again.
func TestSimulation(t *testing.T) { suite.Simulation(t) }

// TestOneSeedOneHistory plays the same seeds in several programs, in another order, and compares every byte of their histories.
func TestOneSeedOneHistory(t *testing.T) { suite.OneSeedOneHistory(t) }

// TestPlay plays seeds in this program, one after the other. TestSimulation runs it in several.
func TestPlay(t *testing.T) { suite.Play(t) }

// TestMutants shows that the checkers can fail: each mutant of the shipped controller must be caught.
func TestMutants(t *testing.T) { suite.Mutants(t) }

// TestMutantsApply keeps the mutants in step with the code.
func TestMutantsApply(t *testing.T) { suite.MutantsApply(t) }
