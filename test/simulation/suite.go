package simulation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/idalloc/idalloc/test/simulation/overlay"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// Suite is a simulator: a test binary that plays histories, or has others of its kind play them. Bind its flags before they are parsed.
type Suite struct {
	// Package has the tests, which run in its directory. Repository is the path from there to that of all modules.
	Package, Repository string
	// Command runs the tests by hand, from the repository.
	Command string
	// Seeds is how many seeds are played if no flag says so.
	Seeds int
	// Controller runs idalloc-controller. Without it there are peers alone.
	Controller world.Controller
	// Policies judge what is written. Without them every write is permitted.
	Policies world.Policies

	seed, first, stride                     uint64
	seeds, workers, mutantSeeds             int
	minutes                                 float64
	faults, profile, only, history, results string
	mutants                                 string
	exact, catch, shrink, hints, proof      bool
}

// Bind adds the flags.
func (s *Suite) Bind(f *flag.FlagSet) {
	f.Uint64Var(&s.seed, "seed", 0, "play this seed alone")
	f.IntVar(&s.seeds, "seeds", 0, "how many seeds to play; 0 is what fits into -minutes, or a small number")
	f.Float64Var(&s.minutes, "minutes", 0, "for how long to play; 0 is until -seeds are played")
	f.Uint64Var(&s.first, "first", 1, "the first seed")
	f.Uint64Var(&s.stride, "stride", 1, "play every so manieth seed")
	f.StringVar(&s.faults, "faults", "", "kinds or families of faults, separated by commas; empty is all")
	f.StringVar(&s.profile, "profile", "", "play only seeds that are strict, default or linked, or of a resource: words separated by commas")
	f.StringVar(&s.only, "only", "", "with -seed: of the drawn faults only these, by index")
	f.StringVar(&s.history, "history", "", "with -seed: write the history into this file (a whole path); the faults are not shrunk")
	f.BoolVar(&s.exact, "exact", !raceEnabled, "play in programs that are built with an overlay of Go's runtime, so that a seed gives one history")
	f.IntVar(&s.workers, "workers", 0, "how many programs play at once; 0 is one for each processor")
	f.StringVar(&s.results, "results", "", "write a line of JSON per seed into this file")
	f.BoolVar(&s.proof, "proof", false, "count only steps that the protocol does not allow as violations")
	f.BoolVar(&s.catch, "catch", false, "stop at the first violation")
	f.BoolVar(&s.shrink, "shrink", true, "leave out faults for as long as a seed still breaks a promise")
	f.StringVar(&s.mutants, "mutants", "", "hunt these mutants, separated by commas, or all")
	f.IntVar(&s.mutantSeeds, "mutant-seeds", 3000, "how many seeds a mutant may survive")
	f.BoolVar(&s.hints, "hints", true, "obey the mutants' faults and profile; without, each mutant meets the histories that CI plays, or those of -faults and -profile")
}

// Main runs the tests. It returns the exit code.
func (s *Suite) Main(m *testing.M) int {
	s.Bind(flag.CommandLine)
	flag.Parse()
	utilruntime.ErrorHandlers = nil //nolint:reassign // its handlers keep times of their own, from outside the bubbles
	return m.Run()
}

func (s *Suite) names() []string {
	if s.faults == "" {
		return nil
	}
	return strings.Split(s.faults, ",")
}

// Simulation plays seeds and fails at the first promise that was broken, with the seed that shows it again.
func (s *Suite) Simulation(t *testing.T) {
	t.Helper()
	if s.seed == 0 && s.history != "" {
		t.Fatal("-history needs -seed")
	}
	if !s.exact {
		s.playHere(t, s.defaultSeeds())
		return
	}
	program, err := overlay.BuildTests(".", s.Package, t.TempDir(), nil, raceEnabled)
	if err != nil {
		t.Fatal(err)
	}
	total, err := playOutside(t.Context(), program, options{
		seeds: s.defaultSeeds(), first: s.first, seed: s.seed, minutes: s.minutes, workers: cmp.Or(s.workers, runtime.GOMAXPROCS(0)),
		pass: []string{
			"-faults=" + s.faults, "-profile=" + s.profile, "-only=" + s.only, "-history=" + s.history, "-shrink=" + strconv.FormatBool(s.shrink),
			"-proof=" + strconv.FormatBool(s.proof),
		},
		failed: func(r Result) { t.Error(r.failure()) }, progress: func(so string) { t.Log(so) },
	})
	t.Log(total.String())
	if err != nil {
		t.Error(err)
	}
}

// OneSeedOneHistory plays the same seeds in several programs, in another order, and compares every byte of their histories.
func (s *Suite) OneSeedOneHistory(t *testing.T) {
	t.Helper()
	if !s.exact {
		t.Skip("only with -exact")
	}
	program, err := overlay.BuildTests(".", s.Package, t.TempDir(), nil, raceEnabled)
	if err != nil {
		t.Fatal(err)
	}
	seeds := min(24, s.Seeds)
	one, err := playOutside(t.Context(), program, options{seeds: seeds, first: 100, workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	other, err := playOutside(t.Context(), program, options{seeds: seeds, first: 100, workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(one.sums) != seeds || !maps.Equal(one.sums, other.sums) {
		t.Errorf("%d seeds did not give one history each:\n%v\n%v", seeds, one.sums, other.sums)
	}
}

func (s *Suite) defaultSeeds() int {
	switch {
	case s.seeds > 0 || s.minutes > 0:
		return s.seeds
	case raceEnabled:
		return s.Seeds / 6
	}
	return s.Seeds
}

// Play plays seeds in this program, one after the other. Simulation runs it in several: as the test TestPlay.
func (s *Suite) Play(t *testing.T) {
	t.Helper()
	if s.results == "" {
		t.Skip("run by TestSimulation")
	}
	s.playHere(t, s.seeds)
}

func (s *Suite) playHere(t *testing.T, seeds int) {
	t.Helper()
	var out *os.File
	if s.results != "" {
		var err error
		if out, err = os.Create(s.results); err != nil {
			t.Fatal(err)
		}
		defer out.Close() //nolint:errcheck // a lost line is a lost seed, which the driver notices
	}
	s.warmUp(t)
	began := time.Now()
	total := figures{faults: map[string]int{}}
	seed := s.first
	if s.seed != 0 {
		seed, seeds = s.seed, 1
	}
	for n := 0; seeds == 0 || n < seeds; n++ {
		if s.minutes > 0 && time.Since(began).Minutes() >= s.minutes {
			break
		}
		if s.profile != "" && !s.fits(seed, strings.Split(s.profile, ",")) {
			seed += s.stride
			n--
			continue
		}
		if out != nil {
			begun := Result{Seed: seed, Command: s.Command, Names: s.names(), Kept: s.onlyThese()} // so that it is known if this program does not survive it
			if err := json.NewEncoder(out).Encode(begun); err != nil {
				t.Fatal(err)
			}
		}
		r := s.playOne(t, seed, s.keeps())
		if len(r.Violations) > 0 && s.only+s.history == "" && !s.catch && s.shrink {
			r = s.shrunk(t, r)
		}
		total.add(r)
		collectGarbage()
		if out != nil {
			if err := json.NewEncoder(out).Encode(r); err != nil {
				t.Fatal(err)
			}
		} else if len(r.Violations) > 0 {
			t.Error(r.failure())
		}
		if s.catch && len(r.Violations) > 0 {
			break
		}
		seed += s.stride
	}
	if out == nil {
		total.took = time.Since(began)
		t.Log(total.String())
	}
}

// collectGarbage is for programs in which it is off during a history.
func collectGarbage() {
	const much = 256 << 20
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc > much {
		runtime.GC()
	}
}

// warmUp plays histories that do not count: what the libraries make at their first use would be part of the first one.
func (s *Suite) warmUp(t *testing.T) {
	t.Helper()
	for seed := range uint64(3) {
		synctest.Test(t, func(*testing.T) { s.Controlled(seed+1, nil, nil, nil) })
	}
}

func (s *Suite) onlyThese() []string {
	if s.only == "" {
		return nil
	}
	return strings.Split(s.only, ",")
}

func (s *Suite) keeps() func(int) bool {
	words := s.onlyThese()
	if words == nil {
		return nil
	}
	return func(i int) bool { return slices.Contains(words, strconv.Itoa(i)) }
}

// playOne plays a seed, and writes what -history asks for when it is over: a write to a disk may take a
// while, and would let others go first.
func (s *Suite) playOne(t *testing.T, seed uint64, keep func(int) bool) Result {
	t.Helper()
	var trace *bytes.Buffer
	var lines io.Writer
	if s.history != "" {
		trace = &bytes.Buffer{}
		lines = trace
	}
	var r Result
	synctest.Test(t, func(*testing.T) {
		defer func() { // also of one that does not come to its end
			if trace != nil {
				if err := os.WriteFile(s.history, trace.Bytes(), 0o600); err != nil {
					t.Error(err)
				}
			}
		}()
		r = s.Controlled(seed, s.names(), keep, lines)
	})
	if keep != nil {
		r.Kept = s.onlyThese()
	}
	return r
}

// shrunk leaves out faults as long as the seed still breaks a promise.
func (s *Suite) shrunk(t *testing.T, r Result) Result {
	t.Helper()
	kept := make([]int, len(r.List))
	for i := range kept {
		kept[i] = i
	}
	for size := len(kept); size > 0; size /= 2 {
		for at := 0; at < len(kept); {
			without := slices.Delete(slices.Clone(kept), at, min(at+size, len(kept)))
			smaller := s.playOne(t, r.Seed, func(i int) bool { return slices.Contains(without, i) })
			if len(smaller.Violations) == 0 {
				at += size
				continue
			}
			kept, r = without, smaller
		}
	}
	for _, i := range kept {
		r.Kept = append(r.Kept, strconv.Itoa(i))
	}
	return r
}
