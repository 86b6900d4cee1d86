package pages_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// command is one that plays a bug again, as hack/record reads it.
var command = regexp.MustCompile("^`(?:(peers|controllers|seed|mutant):)?([\\w-]+)(?:@[0-9a-f]{8,})?`$")

func TestEachCommandOfTheRecordIsThere(t *testing.T) {
	there, rows := played(t), 0
	who := []string{"user", "reader", "simulation", "model", "fuzzer", "cluster", "benchmark", "-"}
	for line := range strings.Lines(read(t, filepath.Join("docs", "figures", "found.md"))) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| symptom |") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 4 {
			t.Errorf("a row has %d cells, not 4: %s", len(cells), line)
			continue
		}
		for by := range strings.SplitSeq(cells[2], ",") {
			if !slices.Contains(who, strings.TrimSpace(by)) {
				t.Errorf("it is not said who found %s: %q", cells[0], by)
			}
		}
		for word := range strings.FieldsSeq(cells[3]) {
			if m := command.FindStringSubmatch(word); word != "-" && (len(m) == 0 || !isSeed(m) && !there[m[1]+":"+m[2]]) {
				t.Errorf("there is no %s, or hack/record does not read it", word)
			}
		}
	}
	if rows == 0 {
		t.Error("the record has no rows")
	}
}

// isSeed reports whether a command plays a seed.
func isSeed(m []string) bool {
	_, err := strconv.ParseUint(m[2], 10, 64)
	return err == nil && m[1] != "" && m[1] != "mutant"
}

// played returns all mutants and tests that there are, as ":name" and "mutant:name".
func played(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	add := func(kind, path, pattern string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, path), -1) {
			there[kind+":"+m[1]] = true
		}
	}
	for _, module := range []string{"", "controller"} {
		add("mutant", filepath.Join(module, "test", "simulation", "mutants.txt"), `(?m)^# (\S+)$`)
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") {
			add("", path, `(?m)^func ((?:Test|Fuzz)\w+)\(`)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
