package main

import (
	"io"
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

func TestTopWithoutATerminalPrintsChanges(t *testing.T) {
	var b strings.Builder
	show, one := lines(&b), scene{ref: ref(), slots: shown()}
	later := metav1.NewTime(one.slots.Slots[0].Since.Add(time.Hour))
	paused := []inspect.PartitionRange{{ID: new(3), Pod: "c", State: inspect.Paused}, {ID: new(0), Pod: "a", State: inspect.Paused}}
	for _, step := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"at first", func() {}, []string{"id 0: held a", "id 1: free -"}},
		{"nothing has changed", func() {}, nil},
		{"only an age differs", func() { one.slots.Slots[0].Since = &later }, nil},
		{"a pod asks", func() { one.slots.Slots[0].State, one.slots.Slots[0].Requester = inspect.Handover, "b" }, []string{"id 0: handover a -> b"}},
		{"the count fell", func() { one.slots.Slots = one.slots.Slots[:1] }, []string{"id 1: gone"}},
		{"it rose again", func() { one.slots.Slots = one.slots.Slots[:2] }, []string{"id 1: free -"}},
		{"two pods pause", func() { one.partitions.Ranges = paused }, []string{"partitions -: paused c of id 3", "partitions -: paused a of id 0"}},
		{"both are still paused", func() {}, nil},
	} {
		step.change()
		b.Reset()
		if err := show(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), []scene{one}); err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for _, line := range step.want {
			want.WriteString("03:04:05 shop deployment.apps/worker " + line + "\n")
		}
		if b.String() != want.String() {
			t.Errorf("%s: got\n%swant\n%s", step.name, b.String(), want.String())
		}
	}
}
