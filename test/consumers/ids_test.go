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

// What the pods of the example make: rate ids in each pod each second, and total together at least.
const generators, rate, total = 8, 6000, 1_000_000

// Pods make ids while they are scaled and replaced. None may be made twice.
func testSnowflake(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	dir := t.TempDir()
	w := deploy(ctx, t, env, "snowflake", generators, program(build(ctx, t, "examples/snowflake"), map[string]string{
		"IDS_DIR": dir, "RATE": strconv.Itoa(rate), "CLOCK_SKEW": "100ms",
	}))
	write := func() {
		t.Helper()
		for _, pod := range w.pods(ctx) {
			w.until(ctx, pod+" makes ids", func(context.Context) (bool, error) { return size(dir, pod) > 0, nil })
		}
	}
	write()
	w.scale(ctx, generators+4)
	write()
	w.scale(ctx, generators)
	w.restart(ctx, generators)
	write()
	w.until(ctx, fmt.Sprintf("%d ids are made", total), func(context.Context) (bool, error) {
		files, err := os.ReadDir(dir)
		made := 0
		for _, f := range files {
			made += size(dir, f.Name())
		}
		return made >= total, err
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
		number := int(m.id >> 12 & (1<<10 - 1))
		if by[number] == nil {
			by[number] = map[string]bool{}
		}
		by[number][m.pod] = true
	}
	if twice > 0 {
		t.Errorf("%d ids were made twice", twice)
	}
	if len(all) < total {
		t.Errorf("%d ids were made, want %d", len(all), total)
	}
	for number := range generators {
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
