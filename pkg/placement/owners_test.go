package placement

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIDsStandInNumericOrder(t *testing.T) {
	o := Owners{10: Of(5), 9: {}, 0: Between(0, 3), 2: Of(9, 11)}
	const want = `{"0":"0-3","2":"9,11","9":"","10":"5"}`
	if o.String() != want {
		t.Errorf("%s, want %s", o, want)
	}
	b, err := json.Marshal(map[string]any{"owners": o})
	if err != nil || string(b) != `{"owners":`+want+`}` {
		t.Errorf("%s: %v", b, err)
	}
	again, err := ParseOwners(want, 12)
	if err != nil || !again.Equal(o) {
		t.Errorf("%s: %v", again, err)
	}
	if none, err := ParseOwners("{}", 12); err != nil || len(none) != 0 || none.String() != "{}" {
		t.Errorf("%s: %v", none, err)
	}
}

func TestAMemberThatOwnsNothingIsNotTheSameAsNoMember(t *testing.T) {
	if (Owners{0: Of(1), 1: {}}).Equal(Owners{0: Of(1)}) {
		t.Error("a member with an empty set is lost")
	}
}

// notJSON is in the errors of texts that are something else.
const notJSON = "not a JSON object"

func TestOwnersThatAreNotCanonicalAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"":                             notJSON,
		"{":                            notJSON,
		"[]":                           notJSON,
		`{"0":"1"`:                     notJSON,
		`{"0":"1",}`:                   notJSON,
		`{"0":"1"}}`:                   notJSON,
		`{"0": "1"}`:                   notJSON,
		` {"0":"1"}`:                   notJSON,
		`{"0":1}`:                      notJSON,
		`{"00":"1"}`:                   notJSON,
		`{"-1":"1"}`:                   notJSON,
		`{"2147483647":"1"}`:           notJSON,
		`{"0":"1";"1":"2"}`:            notJSON,
		`{"1":"1","0":"2"}`:            "id 0 does not follow id 1",
		`{"1":"1","1":"2"}`:            "id 1 does not follow id 1",
		`{"9":"1","10":"2","3":""}`:    "id 3 does not follow id 10",
		`{"0":"1,0"}`:                  `id 0: "1,0" is not in canonical form`,
		`{"0":"64"}`:                   "id 0: partition 64 is not below 64",
		`{"0":"0-7","1":"7-9"}`:        "partition 7 is of id 0 and of id 1",
		`{"3":"5","7":"1-9"}`:          "partition 5 is of id 7 and of id 3",
		`{"0":"0-9","1":"11","2":"5"}`: "partition 5 is of id 0 and of id 2",
	} {
		if o, err := ParseOwners(text, 64); err == nil || o != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s reads as %s: %v, want an error that says %s", text, o, err, says)
		}
	}
}

func TestATargetMayStandInAnyOrder(t *testing.T) {
	o, err := ParseTarget(` { "10" : "40, 0-15", "1":"16-31" , "2":""} `, 64)
	if want := (Owners{1: Between(16, 31), 2: {}, 10: Between(0, 15).Union(Of(40))}); err != nil || !o.Equal(want) {
		t.Errorf("%s: %v, want %s", o, err, want)
	}
}

func TestATargetWithAMistakeIsInvalidAsAWhole(t *testing.T) {
	for text, says := range map[string]string{
		"":                      notJSON,
		"null":                  notJSON,
		`"0-3"`:                 notJSON,
		`{"0":"1"`:              notJSON,
		`{"0":"1"} {}`:          notJSON,
		`{"0":["1"]}`:           notJSON,
		`{"0":null}`:            notJSON,
		`{"0":3}`:               notJSON,
		`{"0":{"1":"2"}}`:       notJSON,
		`{"zero":"1"}`:          `"zero" is no id`,
		`{"01":"1"}`:            `"01" is no id`,
		`{"0":"1","0":"2"}`:     "id 0 is named twice",
		`{"0":"1","1":"0-3"}`:   "partition 1 is of id 1 and of id 0",
		`{"0":"1,1"}`:           "id 0: \"1,1\" names a partition twice",
		`{"0":"0-3","1":"4-8"}`: "id 1: partition 8 is not below 8",
	} {
		if o, err := ParseTarget(text, 8); err == nil || o != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s reads as %s: %v, want an error that says %s", text, o, err, says)
		}
	}
}

// Whatever the text is, there are owners with exactly this text, or a short error. No partition has two owners.
func FuzzParseOwners(f *testing.F) {
	for _, text := range []string{`{}`, `{"0":"0-15,40","1":"16-31","2":""}`, `{"0":"0","1":"0"}`, `{"1":"","0":""}`, `{"9":"1","10":"2"}`, strings.Repeat("\x90", maxError)} {
		f.Add(text, 64)
	}
	f.Fuzz(func(t *testing.T, text string, count int) {
		o, err := ParseOwners(text, count)
		if err != nil {
			if len(err.Error()) > maxError {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		checkOwners(t, o, count)
		if o.String() != text {
			t.Fatalf("%s reads as %s", text, o)
		}
		if target, err := ParseTarget(text, count); err != nil || !target.Equal(o) {
			t.Fatalf("%s is %s as a target: %v", text, target, err)
		}
	})
}

// Whatever a person wrote, the target has one owner for a partition, and its canonical text says the same.
func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{` {"1":"3, 1","0":"7"}`, `{"0":"1,1"}`, `{"0":"1","0":"2"}`, `{"\u0030":"1"}`, strings.Repeat("\x90", maxError)} {
		f.Add(text, 64)
	}
	f.Fuzz(func(t *testing.T, text string, count int) {
		o, err := ParseTarget(text, count)
		if err != nil {
			if len(err.Error()) > maxError {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		checkOwners(t, o, count)
		if again, err := ParseOwners(o.String(), count); err != nil || !again.Equal(o) {
			t.Fatalf("%s reads as %s: %v", o, again, err)
		}
	})
}

// checkOwners fails if a partition has two owners, or is at or above count.
func checkOwners(tb rapid.TB, o Owners, count int) {
	tb.Helper()
	var all Set
	for _, id := range o.IDs() {
		if common := all.Intersect(o[id]); !common.Empty() {
			tb.Fatalf("%s of id %d have another owner, too: %s", common, id, o)
		}
		all = all.Union(o[id])
	}
	if !all.Subset(Between(0, count-1)) {
		tb.Fatalf("not all partitions are below %d: %s", count, o)
	}
}
