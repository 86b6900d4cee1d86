package main

import (
	"io"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/overlap"
)

func TestTwoPodsWithOneIDAreNoSuccess(t *testing.T) {
	dir := t.TempDir()
	for _, pod := range []string{"worker-a", "worker-b"} {
		w, err := overlap.NewWriter(dir, pod, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close() })
		for range 2 {
			if err := w.Sample(func() (id, count int, token int64) { return 1, 5, 7 }); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := &stage{probes: dir, out: io.Discard}
	if err := s.prove(2, 0); err == nil || !strings.Contains(err.Error(), "worker-a") {
		t.Errorf("error is %v", err)
	}
}
