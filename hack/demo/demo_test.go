package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	prove := func(pods ...types.UID) error {
		s := &stage{probes: dir, display: &display{out: io.Discard}, observer: &observer{seen: map[types.UID]bool{}}}
		for _, uid := range pods {
			s.observer.seen[uid] = true
		}
		return s.prove(time.Now())
	}
	if err := prove("a", "b"); err == nil || !strings.Contains(err.Error(), "worker-a") {
		t.Errorf("error is %v", err)
	}
}
