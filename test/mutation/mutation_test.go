package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const sample = "testdata/sample"

// mutate runs the command on the sample and returns what it printed and the last status of each mutant, by its name.
func mutate(t *testing.T, args ...string) (ok bool, out string, rows map[string]row) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "table.csv")
	var printed bytes.Buffer
	ok, err := command(t.Context(), append([]string{"-C", sample, "-equivalent=equivalent.txt", "-packages=.", "-table=" + name}, args...), &printed)
	if err != nil {
		t.Fatal(err)
	}
	found, err := openTable(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = found.close() })
	return ok, printed.String(), found.rows
}

// count counts the mutants whose name and fate fit.
func count(rows map[string]row, name, status, by string) int {
	n := 0
	for found, r := range rows {
		if regexp.MustCompile(name).MatchString(found) && r.status == status && strings.Contains(r.by, by) {
			n++
		}
	}
	return n
}

func TestKnownMutantsMeetTheirFates(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs a test program for each mutant")
	}
	ok, out, rows := mutate(t, "-strict", "-only=Within|Loose/(compare|nil-error)|Sum/drop-statement|Last/swap|Untested/constant|Unsigned/drop-operand|Find/constant|Grade/negate")
	if ok {
		t.Error("the survivors are not listed, and -strict says nothing")
	}
	for _, want := range []struct {
		name, status, by string
		n                int
	}{
		{"Within/negate", unit, "sample TestWithin", 1},
		{"Within/drop-operand", unit, "sample TestWithin", 2},
		{"Within/compare", unit, "sample TestWithin", 2},
		{"Within/drop-statement", notCompiling, "", 1},
		{"Loose/nil-error", unit, "sample TestLoose", 1},
		{"Loose/compare", surviving, "", 1},
		{"Sum/drop-statement", unit, "time", 1},
		{"Last/swap", equivalent, "two keys", 1},
		{"Untested/constant", unit, "user TestNext", 1},
		{"Unsigned/drop-operand", sameCode, "", 1},
		{"Unsigned/drop-operand", unit, "sample TestUnsigned", 1},
		{"Find/constant", unit, "sample TestFind", 2}, // not what stands beside the error
		{"Find/constant", surviving, "", 0},
		{"Grade/negate", unit, "sample TestGrade", 1}, // the condition of a case that no test enters
	} {
		if got := count(rows, want.name, want.status, want.by); got != want.n {
			t.Errorf("%d mutants %s are %s %q, not %d", got, want.name, want.status, want.by, want.n)
		}
	}
	for _, want := range []string{"sample.go:15 sample.Loose/compare/", "- if n < 10 {", "+ if n <= 10 {", "survives"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
}

func TestATableIsContinued(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "table.csv")
	args := []string{"-C", sample, "-equivalent=equivalent.txt", "-packages=.", "-table=" + name, "-only=Within/(negate|drop-statement)"}
	var before int64
	for range 2 {
		if _, err := command(t.Context(), args, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if before != 0 && info.Size() != before {
			t.Errorf("the second run wrote %d bytes", info.Size()-before)
		}
		before = info.Size()
	}
}

func TestTheRootIsFoundFromBelow(t *testing.T) {
	here := mustAbs(t, ".")
	root := filepath.Dir(filepath.Dir(here))
	for _, dir := range []string{root, here, filepath.Join(here, sample)} { // two of them have a go.mod of their own
		t.Chdir(dir)
		if got, err := findRoot(); err != nil || got != root {
			t.Errorf("the root above %s is %q, %v", dir, got, err)
		}
	}
	t.Chdir(t.TempDir())
	if got, err := findRoot(); err == nil || !strings.Contains(err.Error(), "-C") {
		t.Errorf("far from any root it is %q, %v", got, err)
	}
}

func sampleMutants(t *testing.T, root string) []*mutant {
	t.Helper()
	p, err := load(t.Context(), root, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.mutants("")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNamesSurviveChangesElsewhere(t *testing.T) {
	before := sampleMutants(t, mustAbs(t, sample))
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(sample)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "sample.go")
	text, err := os.ReadFile(file) //nolint:gosec // a file of this package
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "// Within", "func another(n int) bool { return n > 7 }\n\n// Within", 1)
	changed = strings.Replace(changed, "\tsum := 0\n", "\tn++\n\tsum := 0\n", 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil { //nolint:gosec // in a temporary directory
		t.Fatal(err)
	}
	after := map[string]bool{}
	for _, m := range sampleMutants(t, root) {
		after[m.name] = true
	}
	names := map[string]bool{}
	for _, m := range before {
		if names[m.name] {
			t.Errorf("two mutants are called %s", m.name)
		}
		names[m.name] = true
		if !after[m.name] {
			t.Errorf("%s has another name now", m)
		}
	}
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// A mutant must differ from the program, and keep its lines: coverage and the compiler's listing are compared by them.
func TestEachMutantChangesItsLinesOnly(t *testing.T) {
	for _, m := range sampleMutants(t, mustAbs(t, sample)) {
		changed := m.text()
		if bytes.Equal(changed, m.original) {
			t.Errorf("%s changes nothing", m)
		}
		if bytes.Count(changed, []byte("\n")) != bytes.Count(m.original, []byte("\n")) {
			t.Errorf("%s moves lines", m)
		}
	}
}

func TestShardsAndSamples(t *testing.T) {
	all := sampleMutants(t, mustAbs(t, sample))
	parts := map[string]int{}
	for part := 1; part <= 3; part++ {
		for _, m := range choose(all, shard{part, 3}, 0, "") {
			parts[m.name]++
		}
	}
	for _, m := range all {
		if parts[m.name] != 1 {
			t.Errorf("%s is in %d of 3 shards", m, parts[m.name])
		}
	}
	draw := func(seed string) []*mutant { return choose(all, shard{1, 1}, 5, seed) }
	first, again, other := draw("1"), draw("1"), draw("2")
	if !slices.Equal(first, again) || slices.Equal(first, other) || len(first) != 5 {
		t.Errorf("a sample does not follow its seed: %v, %v, %v", first, again, other)
	}
}

func TestTheListNeedsReasons(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list")
	for text, ok := range map[string]bool{
		"# a word\n\na.F/swap/123456 both are pure\n":                  true,
		"a.F/swap/123456\n":                                            false,
		"a.F/swap/123456 both are pure\na.F/swap/123456 said before\n": false,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readEquivalent(name); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
