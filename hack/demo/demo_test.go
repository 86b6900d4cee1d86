package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/test/overlap"
)

func TestIDsInWords(t *testing.T) {
	for want, all := range map[string][]int{
		"id 3":           {3},
		"ids 1 and 4":    {4, 1},
		"ids 0 to 4":     {0, 1, 2, 3, 4},
		"ids 0, 2 and 3": {0, 2, 3},
	} {
		if got := ids(all); got != want {
			t.Errorf("%v is %q, want %q", all, got, want)
		}
	}
}

func TestChangesInWords(t *testing.T) {
	before := frame{holders: map[string]int{"a": 0, "b": 1, "c": 2}}
	for want, after := range map[string]map[string]int{
		"new pods have id 3, the pods with ids 0 to 2 kept them":                 {"a": 0, "b": 1, "c": 2, "d": 3},
		"survivors moved from 2 to 0, the pod with id 1 kept it":                 {"c": 0, "b": 1},
		"new pods have id 1, no id stayed where it was":                          {"d": 1},
		"survivors moved from 1 to 0 and from 2 to 1, no id stayed where it was": {"b": 0, "c": 1},
	} {
		if got := changes(before, frame{holders: after}); got != want {
			t.Errorf("%v is %q, want %q", after, got, want)
		}
	}
	if got := changes(frame{}, before); got != "3 pods have ids 0 to 2" {
		t.Errorf("the first pods: %q", got)
	}
}

func TestTextIsWrappedAtSpaces(t *testing.T) {
	if got := wrap("one two three  four", 9, "  "); !slices.Equal(got, []string{"one two", "  three", "  four"}) {
		t.Errorf("lines are %q", got)
	}
	if got := wrap("", 9, ""); !slices.Equal(got, []string{""}) {
		t.Errorf("an empty line is %q", got)
	}
}

func TestLinesPrintOnlyChanges(t *testing.T) {
	var out strings.Builder
	l := &lines{out: &out}
	a := row{id: "0", pod: "a", state: "held"}
	for _, rows := range [][]row{{a}, {a}, {{id: "0", pod: "a", state: gone}}, {}} {
		l.draw(frame{rows: rows})
	}
	if text := out.String(); strings.Count(text, "\n") != 2 || strings.Count(text, gone) != 1 {
		t.Errorf("printed:\n%s", text)
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
			if err := w.Sample(func() (id, count int, epoch int64) { return 1, 5, 7 }); err != nil {
				t.Fatal(err)
			}
		}
	}
	prove := func(pods ...types.UID) error {
		s := &stage{probes: dir, display: &lines{out: io.Discard}, observer: &observer{everSeen: map[types.UID]bool{}}}
		for _, uid := range pods {
			s.observer.everSeen[uid] = true
		}
		return s.prove(time.Now())
	}
	if err := prove("a", "b"); err == nil || !strings.Contains(err.Error(), "worker-a") {
		t.Errorf("error is %v", err)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for want, n := range map[string]int{"7": 7, "999": 999, "1,000": 1000, "1,234,567": 1234567} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
}
