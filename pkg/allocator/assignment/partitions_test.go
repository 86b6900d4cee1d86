package assignment

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/partition/placement"
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
	p := Partitions{
		Count: 64, Strategy: "sticky", Owners: placement.Owners{0: setOf(t, "0-15,40"), 1: setOf(t, "16-31"), 2: {}}, Epoch: 7,
	}
	s := State{Slots: Slots{0: "a"}, Epoch: 9}
	without := s.Encode(DefaultKey, ownerUID)
	s.Partitions = &p
	with := s.Encode(DefaultKey, ownerUID)
	const row = `{"count":64,"strategy":"sticky","owners":{"0":"0-15,40","1":"16-31","2":""}}`
	if with[PartitionOwnersKey] != row || !strings.HasPrefix(with[PartitionSealKey], "1:7:") {
		t.Errorf("stored %s, sealed %s", with[PartitionOwnersKey], with[PartitionSealKey])
	}
	for _, k := range PartitionKeys() {
		delete(with, k)
	}
	if !maps.Equal(with, without) {
		t.Errorf("beside partitions the slots are stored as %v, without them as %v", with, without)
	}
	again := Decode(s.Encode(DefaultKey, ownerUID), DefaultKey, ownerUID, now)
	if !again.Sealed || !again.Partitions.Sealed || !again.State.Partitions.Same(&p) || again.State.Partitions.Epoch != 7 {
		t.Errorf("read as %+v", again)
	}
}

// The bytes of a workload in which nobody pauses do not change for it.
func TestTheRowSaysWhichIDsArePaused(t *testing.T) {
	p := Partitions{Count: 2, Strategy: "sticky", Owners: placement.Owners{0: setOf(t, "0"), 1: {}, 3: setOf(t, "1")}, Paused: placement.Of(1, 3), Epoch: 7}
	const row = `{"count":2,"strategy":"sticky","owners":{"0":"0","1":"","3":"1"},"paused":"1,3"}`
	if got := p.Encode(); got != row {
		t.Errorf("stored as %s", got)
	}
	again, err := parsePartitions(row)
	if err != nil || !again.Paused.Equal(p.Paused) || !slices.Equal(again.Members(), []int{0}) {
		t.Errorf("read as %+v: %v", again, err)
	}
	if awake := (Partitions{Count: 2, Strategy: "sticky", Owners: p.Owners}); awake.Same(&p) {
		t.Error("a pause is no change")
	}
	for _, bad := range []string{`""`, `"2"`, `"0-2147483646"`, `"3,1"`, `"x"`, `1`} {
		text := strings.Replace(row, `"1,3"`, bad, 1)
		if _, err := parsePartitions(text); err == nil {
			t.Errorf("%s can be read", text)
		}
	}
}

// Whatever set each id owns, what is stored is read again, and the size is the one that is foretold.
func TestAnyPartitionsSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Partitions{Count: rapid.IntRange(0, placement.MaxCount).Draw(t, "count"), Strategy: "range", Owners: placement.Owners{}, Epoch: rapid.Int64Range(1, 99).Draw(t, "epoch")}
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
			if rapid.Bool().Draw(t, "paused") {
				p.Paused = p.Paused.Union(placement.Of(id))
			}
		}
		s := State{Slots: Slots{0: "a"}, Epoch: 100, Partitions: &p}
		stored := s.Encode(DefaultKey, ownerUID)
		if got := s.size(); got != Size(stored) {
			t.Fatalf("%d bytes are stored, %d foretold", Size(stored), got)
		}
		again := DecodePartitions(stored, ownerUID, now)
		if !again.Sealed || !again.Partitions.Same(&p) || again.Partitions.Epoch != p.Epoch {
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
	p := Partitions{Count: placement.MaxCount, Strategy: "sticky", Owners: placement.Owners{}, Epoch: now.UnixMilli()}
	for id, set := range numbers {
		p.Owners[id] = placement.Of(set...)
	}
	if size := p.size(); size > 30<<10 {
		t.Errorf("%d bytes", size)
	}
}

func TestDamagedPartitions(t *testing.T) {
	good := State{Slots: Slots{0: "a"}, Epoch: 9, Partitions: &Partitions{
		Count: 4, Strategy: "sticky", Owners: placement.Owners{0: setOf(t, "0-3")}, Epoch: 7,
	}}
	reseal := func(row string) map[string]string {
		return map[string]string{PartitionOwnersKey: row, PartitionSealKey: good.Partitions.seal(row, ownerUID)}
	}
	for name, tc := range map[string]struct {
		change  map[string]string
		without string
		want    PartitionRecord
	}{
		"nothing is wrong":          {nil, "", PartitionRecord{Sealed: true}},
		"another row":               {map[string]string{PartitionOwnersKey: `{"count":5,"strategy":"sticky","owners":{"0":"0-3"}}`}, "", PartitionRecord{}},
		"no seal":                   {nil, PartitionSealKey, PartitionRecord{}},
		"a seal of another owner":   {map[string]string{PartitionSealKey: good.Partitions.seal(good.Partitions.Encode(), "other")}, "", PartitionRecord{}},
		"a later format":            {map[string]string{PartitionSealKey: "2:7:more"}, "", PartitionRecord{Newer: 2}},
		"an epoch from far ahead":   {map[string]string{PartitionSealKey: "1:9007199254740991:x"}, "", PartitionRecord{Problems: make([]ProblemError, 1)}},
		"no JSON":                   {reseal(`{`), "", PartitionRecord{Problems: make([]ProblemError, 1)}},
		"a field that nobody knows": {reseal(`{"count":4,"strategy":"sticky","owners":{},"more":1}`), "", PartitionRecord{Problems: make([]ProblemError, 1)}},
		"something behind it":       {reseal(`{"count":4,"strategy":"sticky","owners":{}} {}`), "", PartitionRecord{Problems: make([]ProblemError, 1)}},
		"too many":                  {reseal(`{"count":4097,"strategy":"sticky","owners":{}}`), "", PartitionRecord{Problems: make([]ProblemError, 1)}},
		"a name that is none":       {reseal(`{"count":4,"strategy":"Sticky!","owners":{}}`), "", PartitionRecord{Problems: make([]ProblemError, 1)}},
		"one partition of two ids":  {reseal(`{"count":4,"strategy":"sticky","owners":{"0":"0-2","1":"2-3"}}`), "", PartitionRecord{Problems: make([]ProblemError, 1)}},
		"no owners":                 {nil, PartitionOwnersKey, PartitionRecord{Problems: make([]ProblemError, 1)}},
	} {
		annotations := good.Encode(DefaultKey, ownerUID)
		maps.Copy(annotations, tc.change)
		delete(annotations, tc.without)
		r := Decode(annotations, DefaultKey, ownerUID, now)
		if got := r.Partitions; !r.Sealed || !got.Present || got.Sealed != tc.want.Sealed || got.Newer != tc.want.Newer || len(got.Problems) != len(tc.want.Problems) {
			t.Errorf("%s: the slots are sealed: %t, and the partitions: %+v", name, r.Sealed, got)
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
			PartitionCountKey: "64", PartitionStrategyKey: "external", PartitionFailoverAfterKey: "2m", PartitionTargetKey: `{"0":"0-1","3":"2"}`,
		}, Wish{Count: 64, HasCount: true, Strategy: "external", FailoverAfter: 2 * time.Minute, Target: target}, nil},
		"no partitions": {map[string]string{PartitionCountKey: "0"}, Wish{HasCount: true, FailoverAfter: DefaultFailoverAfter}, nil},
		"for ever":      {map[string]string{PartitionFailoverAfterKey: Never}, Wish{FailoverAfter: -1}, nil},
		"what makes no sense": {map[string]string{
			PartitionCountKey: "many", PartitionStrategyKey: "by hand", PartitionFailoverAfterKey: "-1s", PartitionTargetKey: `{"0":"0-1","1":"1"}`,
		}, Wish{FailoverAfter: DefaultFailoverAfter}, []string{PartitionCountKey, PartitionStrategyKey, PartitionFailoverAfterKey, PartitionTargetKey}},
		"too many":              {map[string]string{PartitionCountKey: "4097"}, Wish{FailoverAfter: DefaultFailoverAfter}, []string{PartitionCountKey}},
		"a target that is none": {map[string]string{PartitionCountKey: "4", PartitionTargetKey: `{"0":"4"}`}, Wish{Count: 4, HasCount: true, FailoverAfter: DefaultFailoverAfter}, []string{PartitionTargetKey}},
	} {
		got := DecodeWish(tc.annotations)
		var bad []string
		for _, p := range got.Problems {
			bad = append(bad, p.Key)
		}
		if got.Problems = nil; !reflect.DeepEqual(got, tc.want) || !slices.Equal(bad, tc.bad) {
			t.Errorf("%s: %+v, and %v make no sense", name, got, bad)
		}
	}
}

func TestReceiptsOfPartitions(t *testing.T) {
	locked, none := setOf(t, "0-11"), placement.Set{}
	r := Receipt{UID: "u-1", Owner: testOwner, ID: 3, Epoch: 7, Partitions: &locked, Yields: setOf(t, "12-15"), Keeps: true, Paused: true}
	const text = `{"uid":"u-1","owner":"Deployment/worker","id":3,"epoch":7,"partitions":"0-11","yields":"12-15","keeps":true,"paused":true}`
	if got := r.Encode(); got != text {
		t.Errorf("encoded %s", got)
	}
	if got, err := ParseReceipt(text, now); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("read as %+v, %v", got, err)
	}
	r.Partitions, r.Yields, r.Keeps, r.Paused = &none, none, false, false
	if got := r.Encode(); got != `{"uid":"u-1","owner":"Deployment/worker","id":3,"epoch":7,"partitions":""}` {
		t.Errorf("a pod that works on none yet: %s", got)
	}
	for text, want := range map[string]string{
		`{"uid":"u","owner":"o","id":0,"epoch":7,"partitions":"0-3","yields":"2-5"}`:           "0-1", // what is yielded is not locked
		`{"uid":"u","owner":"o","id":0,"epoch":7,"partitions":"0-","yields":"2-5"}`:            "",
		`{"uid":"u","owner":"o","id":0,"epoch":7,"partitions":"0-3","yields":"everything"}`:    "0-3",
		`{"uid":"u","owner":"o","id":0,"epoch":7,"partitions":"0-99999999999999","yields":""}`: "",
	} {
		got, err := ParseReceipt(text, now)
		if err != nil || got.Partitions == nil || got.Partitions.String() != want || !got.Locks() {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
}
