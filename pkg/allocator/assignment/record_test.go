package assignment

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/partition/placement"
)

func TestRecordRoundTrip(t *testing.T) {
	want := State{Slots: Slots{0: "a", 1: "b"}, Handover: Slots{1: "c"}}
	r := Decode(want.Encode())
	if !r.Present || len(r.Problems) > 0 || !r.State.SameContent(want) {
		t.Errorf("Decode(Encode(%+v)) = %+v", want, r)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	s := State{
		Slots: Slots{0: "a"}, Handover: Slots{0: "a"}, Partitions: &Partitions{Count: 4, Strategy: "sticky", Owners: placement.Owners{0: placement.Of(1)}},
	}
	c := s.Clone()
	if !c.SameContent(s) {
		t.Errorf("the copy of %+v is %+v", s, c)
	}
	for name, m := range map[string]Slots{"slots": c.Slots, "requests": c.Handover} {
		if m[0] = "b"; s.Slots[0] != "a" || s.Handover[0] != "a" {
			t.Errorf("the copy shares its %s", name)
		}
	}
	c.Partitions.Owners[0], c.Partitions.Count = placement.Of(2), 5
	if s.Partitions.Count != 4 || !s.Partitions.Owners[0].Equal(placement.Of(1)) {
		t.Error("the copy shares its partitions")
	}
}

func TestTheSameContent(t *testing.T) {
	s := State{Slots: Slots{0: "a"}}
	for name, tc := range map[string]struct {
		other State
		same  bool
	}{
		"empty maps":     {State{Slots: Slots{0: "a"}, Handover: Slots{}}, true},
		"another holder": {State{Slots: Slots{0: "b"}}, false},
		"a request":      {State{Slots: Slots{0: "a"}, Handover: Slots{0: "b"}}, false},
		"partitions":     {State{Slots: Slots{0: "a"}, Partitions: &Partitions{}}, false},
	} {
		if s.SameContent(tc.other) != tc.same {
			t.Errorf("%s: the same content is %t", name, !tc.same)
		}
	}
}

func TestWhatIsEmptyIsNotWritten(t *testing.T) {
	if got := (State{Slots: Slots{}, Handover: Slots{}}).Encode(); !maps.Equal(got, map[string]string{Key: "{}"}) {
		t.Errorf("an empty state is written as %v", got)
	}
	all := State{Handover: Slots{0: "a"}, Partitions: &Partitions{Strategy: "range"}}.Encode()
	for _, key := range Keys() {
		if _, there := all[key]; !there {
			t.Errorf("%s is not written", key)
		}
	}
}

func TestDecodeNothing(t *testing.T) {
	if r := Decode(map[string]string{"other": "x"}); r.Present || len(r.Problems) > 0 {
		t.Errorf("an owner without our annotations reads as %+v", r)
	}
}

// A damaged annotation counts as absent, and the others count.
func TestDecodeNamesEachProblem(t *testing.T) {
	good := State{Slots: Slots{0: "a"}, Handover: Slots{0: "b"}, Partitions: &Partitions{Count: 1, Strategy: "range"}}
	for key, damaged := range map[string]func(*State){
		Key:                func(s *State) { s.Slots = nil },
		HandoverKey:        func(s *State) { s.Handover = nil },
		PartitionOwnersKey: func(s *State) { s.Partitions = nil },
	} {
		annotations, want := good.Encode(), good.Clone()
		annotations[key] = `{"01":"a"}`
		damaged(&want)
		r := Decode(annotations)
		if len(r.Problems) != 1 || r.Problems[0].Key != key || !strings.Contains(r.Problems[0].Error(), key) || !r.State.SameContent(want) {
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
