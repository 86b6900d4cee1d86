package inspect

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// open is a word of a sentence that was not filled in.
var open = regexp.MustCompile(`\{[a-z ]+\}`) //nolint:gochecknoglobals // a constant that Go cannot express

// A program tells findings apart by their kinds, and a person reads one line after another.
func TestEachKindOfFindingHasOneShortSentence(t *testing.T) {
	seen := map[Kind]bool{}
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
