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
	there := map[string]bool{}
	for _, path := range []string{"test/simulation/mutants.txt", "controller/test/simulation/mutants.txt"} {
		for _, m := range regexp.MustCompile(`(?m)^# (\S+)$`).FindAllStringSubmatch(read(t, path), -1) {
			there["mutant:"+m[1]] = true
		}
	}
	test := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range test.FindAllStringSubmatch(read(t, path), -1) {
				there[":"+m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	who, rows := []string{"user", "reader", "simulation", "model", "fuzzer", "cluster", "benchmark", "-"}, 0
	for line := range strings.Lines(read(t, filepath.Join("docs", "figures", "found.md"))) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| symptom |") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		if len(cells) != 4 {
			t.Errorf("a row has %d cells, not 4: %s", len(cells), line)
			continue
		}
		for by := range strings.SplitSeq(cells[2], ",") {
			if !slices.Contains(who, strings.TrimSpace(by)) {
				t.Errorf("it is not said who found %s: %q", cells[0], by)
			}
		}
		for _, word := range strings.Fields(cells[3]) {
			m := command.FindStringSubmatch(word)
			switch {
			case word == "-":
			case m == nil:
				t.Errorf("hack/record does not read %s", word)
			case m[1] == "mutant" || m[1] == "":
				if !there[m[1]+":"+m[2]] {
					t.Errorf("there is no %s", word)
				}
			default:
				if _, err := strconv.ParseUint(m[2], 10, 64); err != nil {
					t.Errorf("%s is no seed", word)
				}
			}
		}
	}
	if rows == 0 {
		t.Error("the record has no rows")
	}
}
