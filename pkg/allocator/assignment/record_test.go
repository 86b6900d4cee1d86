package assignment

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsEmptyIsNotWritten(t *testing.T) {
	if got := (State{Slots: Slots{}, Handover: Slots{}}).Encode(); !maps.Equal(got, map[string]string{Key: "{}"}) {
		t.Errorf("an empty state is written as %v", got)
	}
	all := State{Handover: Slots{0: "a"}, Row: &Row{Strategy: "range"}}.Encode()
	for _, key := range Keys() {
		if _, there := all[key]; !there {
			t.Errorf("%s is not written", key)
		}
	}
}

// A damaged annotation counts as absent, and the others count.
func TestDecodeNamesEachProblem(t *testing.T) {
	good := State{Slots: Slots{0: "a"}, Handover: Slots{0: "b"}, Row: &Row{Count: 1, Strategy: "range"}}
	for key, want := range map[string]State{
		Key:                {Handover: good.Handover, Row: good.Row},
		HandoverKey:        {Slots: good.Slots, Row: good.Row},
		PartitionOwnersKey: {Slots: good.Slots, Handover: good.Handover},
	} {
		annotations := good.Encode()
		annotations[key] = `{"01":"a"}`
		r := Decode(annotations)
		if len(r.Problems) != 1 || r.Problems[0].Key != key || !strings.Contains(r.Problems[0].Error(), key) || !maps.Equal(r.State.Encode(), want.Encode()) {
			t.Errorf("%s: read as %+v", key, r)
		}
	}
}

// An Event has them all: of one damage there should be one text.
func TestProblemsAreToldInOrderAndQuoteTheDamage(t *testing.T) {
	annotations := map[string]string{}
	for _, key := range Keys() {
		annotations[key] = `"damage"`
	}
	got := make([]string, 0, len(Keys()))
	for _, p := range Decode(annotations).Problems {
		got = append(got, p.Key)
		if !strings.Contains(p.Error(), "damage") {
			t.Errorf("the damage is not quoted: %v", p)
		}
	}
	if !slices.Equal(got, Keys()) {
		t.Errorf("problems of %v, want %v", got, Keys())
	}
}
