package tutorial

import (
	"slices"
	"strings"
	"testing"
)

func TestThePageSaysWhatToRun(t *testing.T) {
	page := strings.Join([]string{
		"# Words", "```sh", "not me", "```", "```sh tutorial", "mkdir a", "cd a", "```", "then", "```console tutorial", "$ one", "A  B", "1  2", "$ two", "```",
		"$ not me either",
	}, "\n")
	got, err := steps(page)
	want := []step{{6, "mkdir a\ncd a\n", nil}, {11, "one", []string{"A  B", "1  2"}}, {14, "two", nil}}
	same := func(a, b step) bool {
		return a.line == b.line && a.script == b.script && slices.Equal(a.printed, b.printed)
	}
	if err != nil || !slices.EqualFunc(got, want, same) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAPageWithNothingToRunIsRefused(t *testing.T) {
	for _, page := range []string{"# Words\n```sh\nls\n```\n", "```console tutorial\nA  B\n```\n"} {
		if got, err := steps(page); err == nil {
			t.Errorf("%q: %v", page, got)
		}
	}
}

func TestANameStandsForOnePod(t *testing.T) {
	const a, b, c = "worker-5d9-aaaaa", "worker-5d9-bbbbb", "worker-5d9-ccccc" // of the page
	const x, y = "worker-7f-xxxxx", "worker-7f-yyyyy"
	n := names{}
	for _, s := range []struct {
		shown, printed string
		fits           bool
	}{
		{"ID   POD\n0    " + a, "ID POD\n1 " + x + "\n", false}, // another id
		{"0 " + a + " >3s", "0  " + x + "   >1m20s\n", true},
		{"0 " + a, "0 " + y, false}, // it was x
		{"0 " + b, "0 " + x, false}, // that is a
		{"0 " + a + "\n1 " + b, "0 " + x, false},
		{"0 " + a + "\n1 " + b, "0 " + x + "\n1 " + y, true},
		{"1 " + c, "1 " + y, false},
		{"0-3 owned", "0-3 waiting", false},
		{"0-3 owned -", "0-3 owned >200ms", true},
		{"0-3 owned", "0-3 owned now", false},
		{"6fd6c5d4f4 node1 held 3s", "574c89f59b process-node held 1m20s", true},
		{"6fd6c5d4f4 node1 held 3s", "574c89f59b process-node free 3s", false},
		{"6fd6c5d4f4 node1 held 3s", "- process-node held 3s", false},
		{a, a, false}, // a is x, whatever the pods are called
	} {
		if err := n.fits(strings.Split(s.shown, "\n"), s.printed); (err == nil) != s.fits {
			t.Errorf("%q for %q: %v", s.printed, s.shown, err)
		}
	}
}
