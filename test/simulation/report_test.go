package simulation

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
)

// busySeed is a history with many faults.
const busySeed = 40080

// TestTheReportOfASeed writes the run of a history and makes its page.
func TestTheReportOfASeed(t *testing.T) {
	suite.warmUp(t)
	var chronicle Chronicle
	var r Result
	synctest.Test(t, func(*testing.T) { r = Play(busySeed, nil, nil, nil, &chronicle) })
	dir := filepath.Join(t.TempDir(), "run")
	if err := chronicle.Write(dir, r); err != nil {
		t.Fatal(err)
	}
	run, err := history.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Injected) != len(r.List) || len(run.Workloads) != 1 || run.Steps != int64(r.Steps) || len(run.Violations) != len(r.Violations) {
		t.Fatalf("%d faults, %d workloads, %d steps, violations %v", len(run.Injected), len(run.Workloads), run.Steps, run.Violations)
	}
	if !slices.ContainsFunc(run.Workloads[0].Records, func(s overlap.Record) bool { return s.ID == 0 && s.Token > 0 }) {
		t.Error("nobody is shown under id 0")
	}
	page := filepath.Join(t.TempDir(), "report.html")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "../report", "run", ".", "-run", dir, "-out", page).CombinedOutput(); err != nil { //nolint:gosec // paths of the test
		t.Fatalf("%v\n%s", err, out)
	}
	html, err := os.ReadFile(page) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"seed 40080", r.List[0].Name, "id 0: worker"} {
		if !bytes.Contains(html, []byte(part)) {
			t.Errorf("the page lacks %q", part)
		}
	}
}
