package simulation

import (
	"bufio"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "play this seed alone, and show its history with -trace")
	seedsFlag  = flag.Int("seeds", 20, "how many seeds to play")
	firstFlag  = flag.Uint64("first", 1, "the first seed")
	faultsFlag = flag.String("faults", "", "kinds or families of faults, separated by commas; empty is all")
	traceFlag  = flag.String("trace", "", "write the history into this file")
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Its handlers keep times of their own, from outside the bubbles.
	utilruntime.ErrorHandlers = nil //nolint:reassign // it is meant to be
	os.Exit(m.Run())
}

func TestPlay(t *testing.T) {
	var names []string
	if *faultsFlag != "" {
		names = strings.Split(*faultsFlag, ",")
	}
	first, n := *firstFlag, *seedsFlag
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		var r Result
		synctest.Test(t, func(t *testing.T) {
			if *traceFlag == "" {
				r = Play(seed, names, nil, nil)
				return
			}
			f, err := os.Create(*traceFlag)
			if err != nil {
				t.Fatal(err)
			}
			b := bufio.NewWriter(f)
			r = Play(seed, names, nil, b)
			b.Flush()
			f.Close()
		})
		t.Logf("seed %d: %d steps, %d lines, sum %x, %s", r.Seed, r.Steps, r.Lines, r.Sum, r.Virtual)
		for _, v := range r.Violations {
			t.Errorf("seed %d: %s", seed, v)
		}
	}
}
