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
)

//nolint:gochecknoglobals // flags
var (
	seedFlag    = flag.Uint64("seed", 0, "play this seed alone")
	seedsFlag   = flag.Int("seeds", 0, "how many seeds to play; 0 is what fits into -minutes, or a small number")
	minutesFlag = flag.Float64("minutes", 0, "for how long to play; 0 is until -seeds are played")
	firstFlag   = flag.Uint64("first", 1, "the first seed")
	strideFlag  = flag.Uint64("stride", 1, "play every so manieth seed")
	faultsFlag  = flag.String("faults", "", "kinds or families of faults, separated by commas; empty is all")
	profileFlag = flag.String("profile", "", "play only seeds that are strict, default or linked, or of a resource: words separated by commas")
	onlyFlag    = flag.String("only", "", "with -seed: of the drawn faults only these, by index")
	historyFlag = flag.String("history", "", "with -seed: write the history into this file (a whole path); the faults are not shrunk")
	reportFlag  = flag.String("report", "", "with -seed: write what make report makes a page of into this empty directory (a whole path); the faults are not shrunk")
	exactFlag   = flag.Bool("exact", !raceEnabled, "play in programs that are built with an overlay of Go's runtime, so that a seed gives one history")
	workersFlag = flag.Int("workers", 0, "how many programs play at once; 0 is one for each processor")
	resultsFlag = flag.String("results", "", "write a line of JSON per seed into this file")
	catchFlag   = flag.Bool("catch", false, "stop at the first violation")
	shrinkFlag  = flag.Bool("shrink", true, "leave out faults for as long as a seed still breaks a promise")
)

func TestMain(m *testing.M) {
	flag.Parse()
	utilruntime.ErrorHandlers = nil //nolint:reassign // its handlers keep times of their own, from outside the bubbles
	os.Exit(m.Run())
}

func names() []string {
	if *faultsFlag == "" {
		return nil
	}
	return strings.Split(*faultsFlag, ",")
}

// TestSimulation plays seeds and fails at the first promise that was broken, with the seed that shows it again.
func TestSimulation(t *testing.T) {
	if *seedFlag == 0 && *historyFlag+*reportFlag != "" {
		t.Fatal("-history and -report need -seed")
	}
	if !*exactFlag {
		playHere(t, defaultSeeds())
		return
	}
	program, err := overlay.Build(".", t.TempDir(), nil, raceEnabled)
	if err != nil {
		t.Fatal(err)
	}
	total, err := playOutside(t.Context(), program, options{
		seeds: defaultSeeds(), first: *firstFlag, seed: *seedFlag, minutes: *minutesFlag, workers: cmp.Or(*workersFlag, runtime.GOMAXPROCS(0)),
		pass: []string{
			"-faults=" + *faultsFlag, "-profile=" + *profileFlag, "-only=" + *onlyFlag, "-history=" + *historyFlag, "-report=" + *reportFlag, "-shrink=" + strconv.FormatBool(*shrinkFlag),
		},
		failed: func(r Result) { t.Error(r.failure()) }, progress: func(so string) { t.Log(so) },
	})
	t.Log(total.String())
	if err != nil {
		t.Error(err)
	}
}

// TestOneSeedOneHistory plays the same seeds in several programs, in another order, and compares every byte of their histories.
func TestOneSeedOneHistory(t *testing.T) {
	if !*exactFlag {
		t.Skip("only with -exact")
	}
	program, err := overlay.Build(".", t.TempDir(), nil, raceEnabled)
	if err != nil {
		t.Fatal(err)
	}
	const seeds = 24
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

func defaultSeeds() int {
	switch {
	case *seedsFlag > 0 || *minutesFlag > 0:
		return *seedsFlag
	case raceEnabled:
		return 25
	}
	return 150
}

// TestPlay plays seeds in this program, one after the other. TestSimulation runs it in several.
func TestPlay(t *testing.T) {
	if *resultsFlag == "" {
		t.Skip("run by TestSimulation")
	}
	playHere(t, *seedsFlag)
}

func playHere(t *testing.T, seeds int) {
	t.Helper()
	var out *os.File
	if *resultsFlag != "" {
		var err error
		if out, err = os.Create(*resultsFlag); err != nil {
			t.Fatal(err)
		}
		defer out.Close() //nolint:errcheck // a lost line is a lost seed, which the driver notices
	}
	warmUp(t)
	began := time.Now()
	total := figures{faults: map[string]int{}}
	seed := *firstFlag
	if *seedFlag != 0 {
		seed, seeds = *seedFlag, 1
	}
	for n := 0; seeds == 0 || n < seeds; n++ {
		if *minutesFlag > 0 && time.Since(began).Minutes() >= *minutesFlag {
			break
		}
		if *profileFlag != "" && !Fits(seed, strings.Split(*profileFlag, ",")) {
			seed += *strideFlag
			n--
			continue
		}
		if out != nil {
			begun := Result{Seed: seed, Names: names(), Kept: onlyThese()} // so that it is known if this program does not survive it
			if err := json.NewEncoder(out).Encode(begun); err != nil {
				t.Fatal(err)
			}
		}
		r := playOne(t, seed, only())
		if len(r.Violations) > 0 && *onlyFlag+*historyFlag+*reportFlag == "" && !*catchFlag && *shrinkFlag {
			r = shrink(t, r)
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
		if *catchFlag && len(r.Violations) > 0 {
			break
		}
		seed += *strideFlag
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
func warmUp(t *testing.T) {
	t.Helper()
	for seed := range uint64(3) {
		synctest.Test(t, func(*testing.T) { Play(seed+1, nil, nil, nil, nil) })
	}
}

func onlyThese() []string {
	if *onlyFlag == "" {
		return nil
	}
	return strings.Split(*onlyFlag, ",")
}

func only() func(int) bool {
	words := onlyThese()
	if words == nil {
		return nil
	}
	return func(i int) bool { return slices.Contains(words, strconv.Itoa(i)) }
}

// playOne plays a seed, and writes what -history and -report ask for when it is over: a write to a disk may take a
// while, and would let others go first.
func playOne(t *testing.T, seed uint64, keep func(int) bool) Result {
	t.Helper()
	var trace *bytes.Buffer
	var lines io.Writer
	if *historyFlag != "" {
		trace = &bytes.Buffer{}
		lines = trace
	}
	var chronicle *Chronicle
	if *reportFlag != "" {
		chronicle = &Chronicle{}
	}
	var r Result
	synctest.Test(t, func(*testing.T) {
		defer func() { // also of one that does not come to its end
			if trace != nil {
				if err := os.WriteFile(*historyFlag, trace.Bytes(), 0o600); err != nil {
					t.Error(err)
				}
			}
		}()
		r = Play(seed, names(), keep, lines, chronicle)
	})
	if keep != nil {
		r.Kept = onlyThese()
	}
	if chronicle != nil {
		if err := chronicle.Write(*reportFlag, r); err != nil {
			t.Error(err)
		}
	}
	return r
}

// shrink leaves out faults as long as the seed still breaks a promise.
func shrink(t *testing.T, r Result) Result {
	t.Helper()
	kept := make([]int, len(r.List))
	for i := range kept {
		kept[i] = i
	}
	for size := len(kept); size > 0; size /= 2 {
		for at := 0; at < len(kept); {
			without := slices.Delete(slices.Clone(kept), at, min(at+size, len(kept)))
			smaller := playOne(t, r.Seed, func(i int) bool { return slices.Contains(without, i) })
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
