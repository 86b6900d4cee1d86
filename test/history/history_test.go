package history_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := history.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	late, early := history.Fault{At: 50, Until: 70, Kind: "pause kubelet"}, history.Fault{At: 7, Kind: "kill workload", What: "a", Workload: "strict"}
	records := []overlap.Record{{Before: 1, After: 2, Pod: "a", ID: 0, Count: 1, Token: 5}, {Before: 9, After: 9, Pod: "a", ID: overlap.None}}
	summary := history.Summary{Title: "A run", Seed: "7", Histories: 1, Faults: map[string]int64{"kill": 3}, Violations: []string{"none"}}
	for _, f := range []history.Fault{late, early} {
		if err := w.Fault(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Records("strict", records); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Workload("empty"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(summary); err != nil {
		t.Fatal(err)
	}
	got, err := history.Read(dir)
	want := history.Run{Summary: summary, Injected: []history.Fault{early, late}, Workloads: []history.Workload{{Name: "strict", Records: records}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := history.Create(dir); err == nil || !strings.Contains(err.Error(), "an empty directory") {
		t.Errorf("a second run in one directory: %v", err)
	}
}
