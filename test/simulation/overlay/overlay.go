package overlay

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sourceEdit replaces one piece of text of a file of Go's standard library.
type sourceEdit struct{ file, from, to string }

// drawn is appended to the source of synctest in package runtime: randomness as a function of a bubble's time.
const drawn = `
// still is what a bubble draws at this moment, the nth time.
//
//go:nosplit
func (b *synctestBubble) still(n uint64) uint64 { return drawnFrom(uint64(b.now) + n*0x9e3779b97f4a7c15) }

//go:nosplit
func drawnFrom(x uint64) uint64 {
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// mathRand is another number each time.
//
//go:linkname mathRand
func mathRand() uint64 {
	b := getg().bubble
	if b == nil {
		return rand()
	}
	if b.drawnAt != b.now {
		b.drawnAt, b.drawn = b.now, 0
	}
	b.drawn++
	return b.still(b.drawn)
}

// among orders the timers of one moment: as they were set, or the other way round. It must not change because some other timer was set before: metrics
// outlive a history, and set one after so many values.
func (b *synctestBubble) among(when int64) uint32 {
	b.timed++
	if drawnFrom(uint64(when))&1 == 0 {
		return uint32(b.timed)
	}
	return ^uint32(b.timed)
}

func pollrandn(n uint32) uint32 {
	if b := getg().bubble; b != nil {
		return uint32((uint64(uint32(b.still(uint64(n)))) * uint64(n)) >> 32)
	}
	return cheaprandn(n)
}
`

// edits make Go's own randomness a function of a bubble's virtual time: math/rand, the order in which select looks at its cases,
// that of maps, and that of timers that are due at one moment. What takes long on a busy machine changes nothing: no goroutine has to
// make way for others after 10 ms, and no mutex is handed over because a goroutine waited for a millisecond. Outside of bubbles little
// changes: hashes have a fixed seed, the race detector's build does not shuffle runnable goroutines, and stacks begin with 16 KiB,
// because the production code's grow there at once and to copy them took a tenth of the time.
func edits() []sourceEdit {
	return []sourceEdit{
		{"runtime/rand.go", "	mp := getg().m\n	c := &mp.chacha8\n", "	if b := getg().bubble; b != nil {\n		return b.still(0)\n	}\n	mp := getg().m\n	c := &mp.chacha8\n"},
		{"math/rand/rand.go", "//go:linkname runtime_rand runtime.rand\n", "//go:linkname runtime_rand runtime.mathRand\n"},
		{"math/rand/v2/rand.go", "//go:linkname runtime_rand runtime.rand\n", "//go:linkname runtime_rand runtime.mathRand\n"},
		{"runtime/select.go", "cheaprandn(uint32(norder + 1))", "pollrandn(uint32(norder + 1))"},
		{"runtime/time.go", "t.rand = cheaprand()", "t.rand = getg().bubble.among(t.when)"},
		{"runtime/sema.go", "func internal_sync_nanotime() int64 {\n", "func internal_sync_nanotime() int64 {\n	if b := getg().bubble; b != nil {\n		return b.now\n	}\n"},
		{"runtime/proc.go", "const forcePreemptNS = 10 * 1000 * 1000", "const forcePreemptNS = 3600 * 1000 * 1000 * 1000"},
		{"runtime/proc.go", "const randomizeScheduler = raceenabled", "const randomizeScheduler = false"},
		{"runtime/alg.go", "		hashkey[i] = uintptr(bootstrapRand())", "		hashkey[i] = uintptr(i + 1)"},
		{"runtime/alg.go", "		key[i] = bootstrapRand()", "		key[i] = 0x9e3779b97f4a7c15 * uint64(i+1)"},
		{"runtime/stack.go", "var startingStackSize uint32 = fixedStack", "var startingStackSize uint32 = 16384"},
		{"runtime/proc.go", "newg = malg(stackMin)", "newg = malg(int32(startingStackSize))"},
		{"runtime/synctest.go", "	now     int64  // current fake time\n", "	now     int64  // current fake time\n	drawnAt int64\n	drawn   uint64\n	timed   uint64\n"},
		{"internal/sync/hashtriemap.go", "ht.seed = uintptr(runtime_rand())", "ht.seed = 1"},
	}
}

// write writes an overlay for "go build" in root into dir: the edits above and, on top, the files of extra (by path, with their
// content). It returns the overlay's name. Its error says which text this version of Go does not have.
func write(root, dir string, extra map[string]string) (string, error) {
	env := exec.Command("go", "env", "GOROOT") //nolint:noctx // it only prints
	env.Dir = root
	out, err := env.Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	goroot := strings.TrimSpace(string(out))
	files := map[string]string{}
	for _, e := range edits() {
		path := filepath.Join(goroot, "src", e.file)
		if files[path] == "" {
			source, err := os.ReadFile(path) //nolint:gosec // a file of GOROOT
			if err != nil {
				return "", err
			}
			files[path] = string(source)
		}
		if n := strings.Count(files[path], e.from); n != 1 {
			return "", fmt.Errorf("simulation: %s has %d times %q, not once: this version of Go needs other edits", path, n, e.from)
		}
		files[path] = strings.Replace(files[path], e.from, e.to, 1)
	}
	files[filepath.Join(goroot, "src", "runtime", "synctest.go")] += drawn
	maps.Copy(files, extra)
	replace := map[string]string{}
	for path, content := range files {
		to := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "_"))
		if err := os.WriteFile(to, []byte(content), 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

// BuildTests compiles the tests of a package with the overlay into dir, a whole path, and returns the program's name. The go command runs in
// root, a directory of that package's module: in another module it would build other versions, or nothing. extra replaces files, for mutants.
// It takes minutes the first time.
func BuildTests(root, pkg, dir string, extra map[string]string, race bool) (string, error) {
	file, err := write(root, dir, extra)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "simulate.test")
	args := []string{"test", "-c", "-vet=off", "-overlay", file, "-o", program}
	if race {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, pkg)...) //nolint:gosec,noctx // arguments of ours
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return program, nil
}
