package consumers

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

func testSnowflake(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	testGenerator(ctx, t, env, generator{
		name: "snowflake", pods: 8, rate: 6000, total: 1_000_000,
		number: func(id uint64) int { return int(id >> 12 & (1<<10 - 1)) },
	})
}

func testSonyflake(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	testGenerator(ctx, t, env, generator{
		name: "sonyflake", pods: 4, rate: 2000, total: 100_000,
		number: func(id uint64) int { return int(id & (1<<16 - 1)) },
	})
}

// generator is an example that makes ids.
type generator struct {
	name string
	pods int32
	// rate is how many ids each pod makes in a second, and total is the least number of ids to make.
	rate, total int
	// number returns the number of the machine in an id.
	number func(uint64) int
}

// testGenerator has pods make ids while they are scaled and replaced, and looks for one that was made twice.
func testGenerator(ctx context.Context, t *testing.T, env *suite.Suite, g generator) {
	t.Helper()
	dir := t.TempDir()
	w := deploy(ctx, t, env, g.name, g.pods, program(build(ctx, t, g.name), map[string]string{
		"IDS_DIR": dir, "RATE": strconv.Itoa(g.rate), "CLOCK_SKEW": "100ms",
	}))
	write := func() {
		t.Helper()
		for _, pod := range w.pods(ctx) {
			w.until(ctx, pod+" makes ids", func(context.Context) (bool, error) { return size(dir, pod) > 0, nil })
		}
	}
	write()
	w.scale(ctx, g.pods+4)
	write()
	w.scale(ctx, g.pods)
	w.restart(ctx, g.pods)
	write()
	w.until(ctx, fmt.Sprintf("%d ids are made", g.total), func(context.Context) (bool, error) {
		files, err := os.ReadDir(dir)
		made := 0
		for _, f := range files {
			made += size(dir, f.Name())
		}
		return made >= g.total, err
	})
	w.scale(ctx, 0)

	all := read(t, dir)
	t.Logf("%d ids", len(all))
	slices.SortFunc(all, func(a, b made) int { return cmp.Compare(a.id, b.id) })
	twice, by := 0, map[int]map[string]bool{}
	for i, m := range all {
		if i > 0 && all[i-1].id == m.id {
			if twice++; twice <= 10 {
				t.Errorf("%d was made by %s and by %s", m.id, all[i-1].pod, m.pod)
			}
		}
		number := g.number(m.id)
		if by[number] == nil {
			by[number] = map[string]bool{}
		}
		by[number][m.pod] = true
	}
	if twice > 0 {
		t.Errorf("%d ids were made twice", twice)
	}
	if len(all) < g.total {
		t.Errorf("%d ids were made, want %d", len(all), g.total)
	}
	for number := range int(g.pods) {
		if len(by[number]) < 2 {
			t.Errorf("only %d pods made ids with number %d, so the number changed hands not once", len(by[number]), number)
		}
	}
}

// made is an id and the pod whose file it is in.
type made struct {
	id  uint64
	pod string
}

func read(t *testing.T, dir string) (all []made) {
	t.Helper()
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name())) //nolint:gosec // the test's own directory
		must(t, err)
		if len(content)%8 != 0 {
			t.Errorf("%s has %d bytes", f.Name(), len(content))
		}
		for ; len(content) >= 8; content = content[8:] {
			all = append(all, made{id: binary.BigEndian.Uint64(content), pod: f.Name()})
		}
	}
	return all
}

// size returns how many ids a pod has written.
func size(dir, pod string) int {
	info, err := os.Stat(filepath.Join(dir, pod))
	if err != nil {
		return 0
	}
	return int(info.Size() / 8)
}
