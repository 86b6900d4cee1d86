package assignment

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/placement"
)

func setOf(t *testing.T, text string) placement.Set {
	t.Helper()
	s, err := placement.Parse(text, placement.MaxCount)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPartitionsAreStored(t *testing.T) {
	p := Row{Count: 64, Strategy: "sticky", Owners: placement.Owners{0: setOf(t, "0-15,40"), 1: setOf(t, "16-31"), 2: {}}}
	s := State{Slots: Slots{0: "a"}}
	without := s.Encode()
	s.Row = &p
	with := s.Encode()
	const row = `{"count":64,"strategy":"sticky","owners":{"0":"0-15,40","1":"16-31","2":""}}`
	if with[PartitionOwnersKey] != row {
		t.Errorf("stored %s", with[PartitionOwnersKey])
	}
	again := Decode(with)
	if len(again.Problems) > 0 || !again.State.Row.Same(&p) || !slices.Equal(again.State.Row.Members(), []int{0, 1, 2}) {
		t.Errorf("read as %+v", again)
	}
	if delete(with, PartitionOwnersKey); !maps.Equal(with, without) {
		t.Errorf("beside partitions the slots are stored as %v, without them as %v", with, without)
	}
}

func TestWithoutARowThereAreNoMembers(t *testing.T) {
	var none *Row
	if none.Members() != nil || !none.Same(nil) || none.Same(&Row{}) {
		t.Error("no row is one with members, or the same as an empty one")
	}
}

// Whatever set each id owns, what is stored is read again.
func TestAnyPartitionsSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Row{Count: rapid.IntRange(0, placement.MaxCount).Draw(t, "count"), Strategy: "range", Owners: placement.Owners{}}
		ids := rapid.SliceOfNDistinct(rapid.IntRange(0, 500), 0, 8, rapid.ID).Draw(t, "ids")
		numbers := map[int][]int{}
		for k := range placement.MaxCount {
			if len(ids) > 0 && rapid.IntRange(0, 40).Draw(t, "owned") == 0 {
				id := rapid.SampledFrom(ids).Draw(t, "owner")
				numbers[id] = append(numbers[id], k)
			}
		}
		for _, id := range ids {
			p.Owners[id] = placement.Of(numbers[id]...)
		}
		stored := State{Slots: Slots{0: "a"}, Row: &p}.Encode()
		if again := Decode(stored); len(again.Problems) > 0 || !again.State.Row.Same(&p) {
			t.Fatalf("%+v is read as %+v", p, again)
		}
	})
}

// The owners of the largest number of partitions take about 20 KB, whatever their history.
func TestTheLargestOwnersOfPartitions(t *testing.T) {
	numbers := make([][]int, 1000)
	for k := range placement.MaxCount {
		numbers[k*7%1000] = append(numbers[k*7%1000], k)
	}
	p := Row{Count: placement.MaxCount, Strategy: "sticky", Owners: placement.Owners{}}
	for id, set := range numbers {
		p.Owners[id] = placement.Of(set...)
	}
	if size := len(p.Encode()); size > 30<<10 {
		t.Errorf("%d bytes", size)
	}
}

// A damaged row counts as absent, and the map beside it does not suffer.
func TestDamagedPartitions(t *testing.T) {
	for name, row := range map[string]string{
		"no JSON":                  `{`,
		"a field that is unknown":  `{"count":4,"strategy":"sticky","owners":{},"more":1}`,
		"something behind it":      `{"count":4,"strategy":"sticky","owners":{}} {}`,
		"too many":                 `{"count":4097,"strategy":"sticky","owners":{}}`,
		"fewer than none":          `{"count":-1,"strategy":"sticky","owners":{}}`,
		"a name that is none":      `{"count":4,"strategy":"Sticky!","owners":{}}`,
		"no name":                  `{"count":4,"owners":{}}`,
		"one partition of two ids": `{"count":4,"strategy":"sticky","owners":{"0":"0-2","1":"2-3"}}`,
		"no owners":                `{"count":4,"strategy":"sticky"}`,
		"nothing":                  ``,
	} {
		r := Decode(map[string]string{Key: `{"0":"a"}`, PartitionOwnersKey: row})
		if r.State.Row != nil || len(r.Problems) != 1 || r.Problems[0].Key != PartitionOwnersKey || r.State.Slots[0] != "a" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestWhatTheUserWantsOfPartitions(t *testing.T) {
	target := placement.Owners{0: setOf(t, "0-1"), 3: setOf(t, "2")}
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        Wish
		bad         []string
	}{
		"nothing": {nil, Wish{FailoverAfter: DefaultFailoverAfter}, nil},
		"all": {map[string]string{
			PartitionCountKey: "64", PartitionStrategyKey: "external", PartitionFailoverAfterKey: "2m", PartitionGiveBackAfterKey: "10s", PartitionTargetKey: `{"0":"0-1","3":"2"}`,
		}, Wish{Count: 64, HasCount: true, Strategy: "external", FailoverAfter: 2 * time.Minute, HasFailoverAfter: true, GiveBackAfter: 10 * time.Second, Target: target}, nil},
		"no partitions": {map[string]string{PartitionCountKey: "0"}, Wish{HasCount: true, FailoverAfter: DefaultFailoverAfter}, nil},
		"for ever":      {map[string]string{PartitionFailoverAfterKey: Never}, Wish{FailoverAfter: -1, HasFailoverAfter: true}, nil},
		"what makes no sense": {map[string]string{
			PartitionCountKey: "many", PartitionStrategyKey: "by hand", PartitionFailoverAfterKey: "-1s", PartitionGiveBackAfterKey: Never, PartitionTargetKey: `{"0":"0-1","1":"1"}`,
		}, Wish{FailoverAfter: DefaultFailoverAfter}, []string{PartitionCountKey, PartitionStrategyKey, PartitionFailoverAfterKey, PartitionGiveBackAfterKey, PartitionTargetKey}},
		"too many":              {map[string]string{PartitionCountKey: "4097"}, Wish{FailoverAfter: DefaultFailoverAfter}, []string{PartitionCountKey}},
		"a target that is none": {map[string]string{PartitionCountKey: "4", PartitionTargetKey: `{"0":"4"}`}, Wish{Count: 4, HasCount: true, FailoverAfter: DefaultFailoverAfter}, []string{PartitionTargetKey}},
	} {
		got := DecodeWish(tc.annotations)
		bad := make([]string, 0, len(got.Problems))
		for _, p := range got.Problems {
			bad = append(bad, p.Key)
		}
		if got.Problems = nil; !reflect.DeepEqual(got, tc.want) || !slices.Equal(bad, tc.bad) {
			t.Errorf("%s: %+v, and %v make no sense", name, got, bad)
		}
	}
}
