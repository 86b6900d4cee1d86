package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

func shown() inspect.View {
	at := metav1.NewTime(time.Unix(1_000, 0).UTC())
	return inspect.View{Owner: "Deployment/worker", Namespace: "shop", Count: 2, Slots: []inspect.Slot{
		{ID: 0, Pod: "a", Node: "n1", Revision: "5d9", State: inspect.Held, Since: &at, HeldSince: &at, Phase: "Running", Lease: &inspect.LeaseRow{Pod: "a", Renewed: at, Ends: metav1.NewTime(at.Add(58 * time.Second))}},
		{ID: 1, State: inspect.Free},
	}}
}

func ref() kinds.Ref {
	return kinds.Ref{APIVersion: "apps/v1", Kind: kinds.Deployment, Namespace: "shop", Name: "worker"}
}

// printed prints what get has for programs.
func printed(t *testing.T, w io.Writer, format string, list bool) error {
	t.Helper()
	name, template, templated := strings.Cut(format, "=")
	if templated {
		name += "="
	}
	p, err := formats().Printer(name, template)
	if err != nil {
		t.Fatal(err)
	}
	return p(w, list, commands.Item{About: ref(), Kind: "Slots", Data: shown()})
}

func TestFormatsForPrograms(t *testing.T) {
	for format, want := range map[string]string{
		"name": "deployment.apps/worker\n",
		"jsonpath={.slots[*].state}/{.metadata.name}": "held free/worker",
		"go-template={{.count}}":                      "2",
		"json":                                        `"kind": "Slots"`,
		"yaml":                                        "namespace: shop\n",
	} {
		var b strings.Builder
		if err := printed(t, &b, format, false); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("-o %s: %v: %s", format, err, b.String())
		}
	}
	var b strings.Builder
	if err := printed(t, &b, "jsonpath={.items[*].owner}", true); err != nil || b.String() != "Deployment/worker" {
		t.Errorf("a list: %v: %s", err, b.String())
	}
}

func TestARowIsPrintedAgainOnlyIfItChanged(t *testing.T) {
	v, known := shown(), seen{}
	later := metav1.NewTime(v.Slots[0].Since.Add(time.Hour))
	for _, step := range []struct {
		name   string
		change func()
		fresh  []int
		gone   []string
	}{
		{"at first", func() {}, []int{0, 1}, nil},
		{"only an age differs", func() { v.Slots[0].Since = &later }, nil, nil},
		{"a slot was taken", func() { v.Slots[1].State, v.Slots[1].Pod = inspect.Held, "b" }, []int{1}, nil},
		{"the count fell", func() { v.Slots = v.Slots[:1] }, nil, []string{"1"}},
		{"it rose again", func() { v.Slots = v.Slots[:2] }, []int{1}, nil},
	} {
		step.change()
		if fresh, gone := known.differ(keyed(v.Rows(time.Time{}))); !slices.Equal(fresh, step.fresh) || !slices.Equal(gone, step.gone) {
			t.Errorf("%s: %v and %v", step.name, fresh, gone)
		}
	}
}

func TestRowsOfPausedPodsAreToldApart(t *testing.T) {
	rows, known := [][]string{{"-", "1", "a", "paused"}, {"-", "2", "b", "paused"}}, seen{}
	known.differ(keyed(rows))
	if fresh, gone := known.differ(keyed(rows)); len(fresh)+len(gone) > 0 {
		t.Errorf("nothing has changed: %v and %v", fresh, gone)
	}
}

func TestTopWithoutATerminalPrintsChanges(t *testing.T) {
	var b strings.Builder
	show := lines(&b)
	one := scene{ref: ref(), slots: shown()}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 2 {
		if err := show(at, []scene{one}); err != nil {
			t.Fatal(err)
		}
	}
	one.slots = shown()
	one.slots.Slots[0].State, one.slots.Slots[0].Requester = inspect.Handover, "b"
	if err := show(at, []scene{one}); err != nil {
		t.Fatal(err)
	}
	want := "03:04:05 shop deployment.apps/worker id 0: held a\n03:04:05 shop deployment.apps/worker id 1: free -\n03:04:05 shop deployment.apps/worker id 0: handover a -> b\n"
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	if got := string(cut([]byte("a\nb\nc\n"), 2)); got != "a\nb\n" {
		t.Errorf("cut to two lines: %q", got)
	}
}
