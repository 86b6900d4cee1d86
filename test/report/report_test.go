package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
)

// shows returns samples of a pod with id 3 every 5 ms.
func shows(pod string, from, to time.Duration, token int64) []overlap.Record {
	var all []overlap.Record
	for t := from; t < to; t += 5 * time.Millisecond {
		all = append(all, overlap.Record{Before: int64(t), After: int64(t) + 1000, Pod: pod, ID: 3, Count: 10, Token: token})
	}
	return all
}

// busy is a run like that of fifteen minutes with a fault every second.
func busy(t *testing.T, dir string) {
	t.Helper()
	w, err := history.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same page every time
	const length = 15 * time.Minute
	for _, name := range []string{"default", "strict"} {
		var records []overlap.Record
		pod := 0
		for id := range 8 {
			token := int64(1)
			for at := time.Duration(random.IntN(500)) * time.Millisecond; at < length; pod++ {
				long := time.Duration(200+random.IntN(12000)) * time.Millisecond
				records = append(records, overlap.Record{Before: int64(at), After: int64(at), Pod: fmt.Sprintf("worker-5d9c7f-%05d", pod), ID: id, Count: 8, Token: token},
					overlap.Record{Before: int64(at + long), After: int64(at + long), Pod: fmt.Sprintf("worker-5d9c7f-%05d", pod), ID: id, Count: 8, Token: token})
				at += long + time.Duration(20+random.IntN(1500))*time.Millisecond
				token++
			}
		}
		if name == "default" {
			records = append(records, shows("worker-twice", 100*time.Second, 104*time.Second, 1)...)
		}
		if err := w.Records(name, records); err != nil {
			t.Fatal(err)
		}
	}
	for i, at := 0, time.Duration(0); at < length; i++ {
		kinds := []string{"kill workload", "suspend workload", "kill API server", "kill etcd", "suspend kubelet", "delete pod", "rollout", "scale", "tamper: wipe", "network: latency", "network: reset"}
		f := history.Fault{At: int64(at), Kind: kinds[random.IntN(len(kinds))], What: "worker <x> & \"y\""}
		if strings.Contains(f.Kind, "suspend") || strings.Contains(f.Kind, "network") {
			f.Until = f.At + int64(time.Duration(500+random.IntN(6000))*time.Millisecond)
		}
		if i%3 == 0 {
			f.Workload = "strict"
		}
		if err := w.Fault(f); err != nil {
			t.Fatal(err)
		}
		at += time.Duration(200+random.IntN(2500)) * time.Millisecond
	}
	if err := w.Close(history.Summary{Title: "A busy run", Seed: "42", Histories: 1, Notes: []string{"Made up by a test."}}); err != nil {
		t.Fatal(err)
	}
}

func TestThePage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	busy(t, dir)
	out := filepath.Join(t.TempDir(), "report.html")
	if keep := os.Getenv("REPORT_OUT"); keep != "" {
		out = keep // to look at
	}
	if err := report(dir, out); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(out) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"A busy run", "kill API server", "worker-5d9c7f-", "both showed it", "overlaps: 1", "worker &lt;x&gt;", "prefers-color-scheme: dark"} {
		if !bytes.Contains(html, []byte(part)) {
			t.Errorf("the page lacks %q", part)
		}
	}
	for _, part := range []string{"ZgotmplZ", "http:", "https:", "src=", "@import", "NaN"} {
		if bytes.Contains(html, []byte(part)) {
			t.Errorf("the page has %q: it must need nothing from elsewhere, and be filled in whole", part)
		}
	}
}
