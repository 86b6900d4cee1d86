package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/test/overlap"
)

func TestChangesInWords(t *testing.T) {
	before := frame{holders: map[string]int{"a": 0, "b": 1, "c": 2}}
	for want, after := range map[string]map[string]int{
		"new pods have ids 3; nothing changed for 0, 1, 2":   {"a": 0, "b": 1, "c": 2, "d": 3},
		"survivors moved from 2 to 0; nothing changed for 1": {"c": 0, "b": 1},
		"survivors moved from 1 to 0, 2 to 1":                {"b": 0, "c": 1},
		"new pods have ids 1":                                {"d": 1},
	} {
		if got := changes(before, frame{holders: after}); got != want {
			t.Errorf("%v is %q, want %q", after, got, want)
		}
	}
}

func TestNumbersInWords(t *testing.T) {
	for n, want := range []string{"0 times", "once", "twice", "3 times"} {
		if got := times(int64(n)); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestEntriesOfGonePodsAboveTheCountDoNotDelayAPhase(t *testing.T) {
	f := frame{
		holders: map[string]int{"a": 0}, pods: map[string]*corev1.Pod{"a": {}},
		rows: []row{{id: "0", pod: "a", fine: true}, {id: "6", pod: "b", state: gone, leftover: true}},
	}
	if !f.settled(1) {
		t.Error("the entry of a gone pod above the count keeps the phase from its end")
	}
	f.rows[1].leftover = false
	if f.settled(1) {
		t.Error("settled while a pod has an id above the count")
	}
}

func TestLinesPrintOnlyChanges(t *testing.T) {
	var out strings.Builder
	d := &display{out: &out, printed: map[string]row{}}
	held, noted := row{id: "0", pod: "a", state: "held"}, row{id: "0", pod: "a", state: "held", note: "new"}
	there := map[string]*corev1.Pod{"a": {}}
	for _, f := range []frame{
		{rows: []row{held}, pods: there},
		{rows: []row{noted}, pods: there},
		{pods: there}, // between two rows: the Deployment was read before the pod took its slot
		{rows: []row{{id: "0", pod: "a", state: gone}}},
		{},
	} {
		d.draw(f, "")
	}
	if text := out.String(); strings.Count(text, "\n") != 2 || strings.Count(text, gone) != 1 {
		t.Errorf("printed:\n%s", text)
	}
}

func TestTheTableIsDrawnInItsPlace(t *testing.T) {
	var out strings.Builder
	d := &display{out: &out, terminal: true}
	f := frame{rows: []row{{id: "0", pod: "a", state: "held"}}}
	d.draw(f, "one")
	d.draw(f, "two")
	d.say("over")
	d.say("next")
	// An empty line, the heads, the row, an empty line and the status: five lines are replaced, twice.
	if text := out.String(); strings.Count(text, "\x1b[5A\r") != 2 || strings.Count(text, "A\r") != 2 {
		t.Errorf("printed %q", text)
	}
}

func TestTheHistoryNamesPods(t *testing.T) {
	report := overlap.Report{Slots: map[int]overlap.Slot{
		0: {Holders: []string{"worker-5d9-x2/3f1c-09be", "worker-5d9-k8/90d2-a7c4"}, MaxGap: 7 * time.Millisecond},
		1: {Holders: []string{"worker-5d9-b4/11aa-22bb"}},
	}}
	want := []string{"  id 0: worker-5d9-x2 then worker-5d9-k8   (free for 7 ms)", "  id 1: worker-5d9-b4"}
	if got := history(report); !slices.Equal(got, want) {
		t.Errorf("lines are %q", got)
	}
}

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
