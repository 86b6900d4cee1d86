package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
)

func TestARunLeavesWhatHappenedByTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := history.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	const second = 1_000_000_000
	w.Fault(history.Fault{At: 150 * second, Until: 170 * second, Kind: "suspend kubelet"})
	w.Fault(history.Fault{At: 107 * second, Kind: "kill workload", What: "worker-a", Workload: "strict"})
	logs, err := w.Workload("strict")
	if err != nil {
		t.Fatal(err)
	}
	show := func(pod string, id int, token, from, to int64) {
		var text strings.Builder
		for _, at := range []int64{from, (from + to) / 2, to} {
			fmt.Fprintln(&text, overlap.Record{Before: at * second, After: at * second, Pod: pod, ID: id, Count: 2, Token: token})
		}
		if err := os.WriteFile(filepath.Join(logs, pod+overlap.Suffix), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	show("worker-a", 0, 1, 101, 140)
	show("worker-b", 1, 2, 102, 199)
	if err := w.Close(history.Summary{Title: "A run", Violations: []string{"two at work"}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "run.txt")) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	const want = `A run
two at work
    0.000 s for    39.000 s  strict: worker-a shows 0 under token 1
    1.000 s for    97.000 s  strict: worker-b shows 1 under token 2
    6.000 s for     0.000 s  fault: kill workload strict worker-a
   49.000 s for    20.000 s  fault: suspend kubelet
`
	if string(text) != want {
		t.Errorf("the file says\n%s", text)
	}
	if _, err := history.Create(dir); err == nil || !strings.Contains(err.Error(), "an empty directory") {
		t.Errorf("a second run in one directory: %v", err)
	}
}
