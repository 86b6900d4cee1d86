package inspect

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// filled checks that no word of the sentences was left open.
func filled(t *testing.T, sentences ...string) {
	t.Helper()
	if word := regexp.MustCompile(`\{[a-z ]+\}`).FindString(strings.Join(sentences, "\n")); word != "" {
		t.Errorf("%s is not filled in: %q", word, sentences)
	}
}

// A case shows what each finding says, so that a person can read the sentence with its words filled in.
func TestEachKindOfFindingHasACase(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, path := range paths {
		cases, err := os.ReadFile(path) //nolint:gosec // a file of this package
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, cases...)
	}
	for _, r := range findings() {
		if r.kind != "silent" && !strings.Contains(string(text), "\n"+r.kind+": ") { // unused_test.go has that one
			t.Errorf("no case in testdata shows the finding %s", r.kind)
		}
	}
}

// A program tells findings apart by their kinds, and a person reads one line after another.
func TestEachKindOfFindingHasOneShortSentence(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range slices.Concat(findings(), warnings(), notes()) {
		if seen[r.kind] {
			t.Errorf("%s has two sentences", r.kind)
		}
		seen[r.kind] = true
		for sentence := range strings.SplitSeq(r.sentence, ". ") {
			if words := strings.Fields(regexp.MustCompile("`[^`]*`").ReplaceAllString(sentence, "command")); len(words) > 25 {
				t.Errorf("%s: %d words: %s", r.kind, len(words), sentence)
			}
		}
	}
}
