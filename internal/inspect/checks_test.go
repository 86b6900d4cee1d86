package inspect

import (
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
