package tutorial

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
)

var (
	pod  = regexp.MustCompile(`^worker-((linked|partitions)-)?[0-9a-z]+-[0-9a-z]{5}$`)
	span = regexp.MustCompile(`^(-|>?[0-9]+(ms|[smhd][0-9smhd]*))$`)
	// revision has the characters that Kubernetes makes hashes of: no vowels, so no words.
	revision = regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{8,10}$`)
	node     = regexp.MustCompile(`^(node[0-9]*|process-node)$`)
)

// names says which pod of the cluster a name in the page stands for.
type names map[string]string

// fits says whether a command printed what the page shows, but for the names of pods, times, and how wide columns are. If so, it also
// remembers the names.
func (n names) fits(shown []string, printed string) error {
	got := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	if len(got) != len(shown) {
		return fmt.Errorf("%d lines, the page has %d", len(got), len(shown))
	}
	learned := maps.Clone(n)
	for i, line := range shown {
		want, is := strings.Fields(line), strings.Fields(got[i])
		if len(want) != len(is) {
			return fmt.Errorf("%q, the page has %q", got[i], line)
		}
		for j := range want {
			if err := learned.same(want[j], is[j]); err != nil {
				return fmt.Errorf("%q: %w", got[i], err)
			}
		}
	}
	maps.Copy(n, learned)
	return nil
}

func (n names) same(want, is string) error {
	for _, varies := range []*regexp.Regexp{span, revision, node} {
		if varies.MatchString(want) && varies.MatchString(is) {
			return nil
		}
	}
	if want == is && !pod.MatchString(want) {
		return nil
	}
	if !pod.MatchString(want) || !pod.MatchString(is) {
		return fmt.Errorf("%s, the page has %s", is, want)
	}
	if known, ok := n[want]; ok && known != is {
		return fmt.Errorf("%s of the page is %s, not %s", want, known, is)
	}
	for other, known := range n {
		if known == is && other != want {
			return fmt.Errorf("%s is %s of the page, not %s", is, other, want)
		}
	}
	n[want] = is
	return nil
}
