package history_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
)

func TestARunLeavesItsPage(t *testing.T) {
	dir := os.Getenv("HISTORY_DIR") // to look at
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "run")
	}
	w, err := history.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	const second = 1_000_000_000
	w.Fault(history.Fault{At: 50 * second, Until: 70 * second, Kind: "suspend kubelet"})
	w.Fault(history.Fault{At: 7 * second, Kind: "kill workload", What: `worker-a </script> & "b"`, Workload: "strict"})
	var records []overlap.Record
	show := func(pod string, id int, token, from, to int64) {
		for _, at := range []int64{from, (from + to) / 2, to} {
			records = append(records, overlap.Record{Before: at * second, After: at * second, Pod: pod, ID: id, Count: 2, Token: token})
		}
		records = append(records, overlap.Record{Before: to * second, After: to * second, Pod: pod, ID: overlap.None})
	}
	show("worker-a", 0, 1, 1, 40)
	show("worker-b", 1, 2, 2, 99)
	show("worker-c", 0, 3, 39, 90) // beside worker-a
	if err := w.Records("strict", records); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(history.Summary{Title: "A run", Seed: "7", Histories: 1, Counts: map[string]int64{"lost answer": 3}, Violations: []string{"two at work"}}); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(filepath.Join(dir, "index.html")) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	for _, has := range []string{
		`"title":"A run"`, `"counts":{"lost answer":3}`, `"kind":"suspend kubelet"`, `"violations":["two at work"]`,
		`{"pod":"worker-a","id":0,"token":1,"from":1000000000,"to":40000000000},{"pod":"worker-b","id":1,"token":2,`, `{"id":0,"holders":2,`,
	} {
		if !strings.Contains(string(html), has) {
			t.Errorf("the page lacks %s", has)
		}
	}
	if n := strings.Count(string(html), "</script>"); n != 1 {
		t.Errorf("the script ends %d times: a name is not escaped", n)
	}
	for _, has := range []string{"http:", "https:", "src=", "@import", "ZgotmplZ"} {
		if strings.Contains(string(html), has) {
			t.Errorf("the page has %q: it must need nothing from elsewhere, and be filled in whole", has)
		}
	}
	if _, err := history.Create(dir); err == nil || !strings.Contains(err.Error(), "an empty directory") {
		t.Errorf("a second run in one directory: %v", err)
	}
}
