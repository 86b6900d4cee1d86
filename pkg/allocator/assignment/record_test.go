package assignment

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ownerUID is the UID of all tests' owner.
const ownerUID = "0b7d7f3e-7f1c-4a57-9f6e-3ad9f64cf7a7"

var now = time.UnixMilli(1795219200123) //nolint:gochecknoglobals // the time of all tests

func TestRecordRoundTrip(t *testing.T) {
	want := State{Slots: Slots{0: "a", 1: "b"}, Handover: Slots{1: "c"}, UIDs: Slots{0: "u-1", 1: "u-2"}, Epoch: now.UnixMilli()}
	r := Decode(want.Encode(DefaultKey, ownerUID), DefaultKey, ownerUID, now)
	if !r.Present || !r.Sealed || len(r.Problems) > 0 || r.State.Epoch != want.Epoch || !r.State.SameContent(want) {
		t.Errorf("Decode(Encode(%+v)) = %+v", want, r)
	}
}

// Whatever changes a value that the seal covers breaks the seal.
func TestSealCoversEveryKey(t *testing.T) {
	s := State{Slots: Slots{0: "a", 1: "b"}, Handover: Slots{1: "c"}, UIDs: Slots{0: "u-1", 1: "u-2"}, Epoch: now.UnixMilli()}
	for _, key := range Keys(DefaultKey) {
		for name, change := range map[string]func(map[string]string){
			"removed": func(m map[string]string) { delete(m, key) },
			"edited":  func(m map[string]string) { m[key] += "1" },
		} {
			annotations := s.Encode(DefaultKey, ownerUID)
			before := maps.Clone(annotations)
			change(annotations)
			if !maps.Equal(before, annotations) && Decode(annotations, DefaultKey, ownerUID, now).Sealed {
				t.Errorf("the seal still fits with %s %s", key, name)
			}
		}
	}
}

// Pods of two versions may run beside each other: what format 1 is may not change.
func TestFormatOneStaysAsItIs(t *testing.T) {
	s := State{
		Slots: Slots{0: "a", 1: strings.Repeat("b", 2000)}, Handover: Slots{1: "c"}, UIDs: Slots{0: "u-1"},
		FenceAfter: 30 * time.Second, Quarantine: Quarantine{{From: 2, To: MaxID, Epoch: 5}}, Epoch: 7,
	}
	if got, want := s.Encode(DefaultKey, ownerUID)[SealKey], "1:7:1885694a82c34cf3a0b15812"; got != want {
		t.Errorf("the seal is %s, the version before writes %s", got, want)
	}
}

func TestSealDiffersAtEveryWrite(t *testing.T) {
	s := State{Slots: Slots{0: "a"}, Epoch: 5}
	first := s.Encode(DefaultKey, ownerUID)[SealKey]
	s.Epoch++
	if second := s.Encode(DefaultKey, ownerUID)[SealKey]; first == second {
		t.Error("two writes with one content have one seal, so managedFields would not name the second writer")
	}
}

func TestOtherAnnotationKey(t *testing.T) {
	const key = "cdap.instances.assignment"
	annotations := State{Slots: Slots{0: "a"}, Epoch: 7}.Encode(key, ownerUID)
	if annotations[key] != `{"0":"a"}` {
		t.Errorf("the assignment is not under %s: %v", key, annotations)
	}
	if r := Decode(annotations, key, ownerUID, now); !r.Sealed || r.OtherKey != "" {
		t.Errorf("under its own key it reads as %+v", r)
	}
	if r := Decode(annotations, DefaultKey, ownerUID, now); !r.Elsewhere() || r.OtherKey != key {
		t.Errorf("under another key it reads as %+v", r)
	}
	annotations["team"] = "{a"
	annotations[DefaultKey] = `{"0":"b"}`
	if r := Decode(annotations, DefaultKey, ownerUID, now); !r.Elsewhere() || r.State.Slots[0] != "a" {
		t.Errorf("beside an assignment of before it reads as %+v", r)
	}
	annotations[EpochKey] = "8"
	if r := Decode(annotations, DefaultKey, ownerUID, now); r.Sealed || r.OtherKey != "" {
		t.Errorf("a seal that fits none reads as %+v", r)
	}
	if r := Decode(annotations, key, ownerUID, now); r.Sealed || r.Elsewhere() {
		t.Errorf("a seal that fits none reads as %+v", r)
	}
}

// An assignment of nobody under another key is in nobody's way, and what stands beside it counts.
func TestAnEmptyAssignmentUnderAnotherKey(t *testing.T) {
	const key = "cdap.instances.assignment"
	want := State{Slots: Slots{}, FenceAfter: 30 * time.Second, Quarantine: Quarantine{{From: 0, To: MaxID, Epoch: 6}}, Epoch: 7}
	annotations := want.Encode(key, ownerUID)
	annotations[DefaultKey] = "not an assignment"
	r := Decode(annotations, DefaultKey, ownerUID, now)
	if !r.Sealed || r.Elsewhere() || !reflect.DeepEqual(r.State, want) {
		t.Errorf("it reads as %+v, want %+v", r, want)
	}
	annotations[key] = "{ }"
	if r := Decode(annotations, DefaultKey, ownerUID, now); r.Sealed {
		t.Errorf("after somebody's edit it reads as %+v", r)
	}
}

func TestASealIsForOneOwner(t *testing.T) {
	copied := State{Slots: Slots{0: "a"}, UIDs: Slots{0: "u-1"}, Epoch: 7}.Encode(DefaultKey, ownerUID)
	if Decode(copied, DefaultKey, "another", now).Sealed {
		t.Error("what a restore tool copied to another object is sealed there")
	}
}

// A number in front of the seal says which version's it is; what cannot be one is damage.
func TestSealsOfOtherFormats(t *testing.T) {
	ours := State{Slots: Slots{0: "a"}, UIDs: Slots{0: "u-1"}, Epoch: 7}.Encode(DefaultKey, ownerUID)
	for seal, newer := range map[string]int{
		ours[SealKey]: 0, "2:7:x": 2, "2:": 2, "42:anything at all": 42, "999:7": 999,
		"0:7:x": 0, "-2:7:x": 0, "02:7:x": 0, "+2:7:x": 0, "2": 0, "": 0, ":": 0, "x:7:x": 0, "1000:7:x": 0, "1795219200123:00": 0,
	} {
		annotations := maps.Clone(ours)
		annotations[SealKey] = seal
		r := Decode(annotations, DefaultKey, ownerUID, now)
		if r.Newer != newer || r.Sealed != (seal == ours[SealKey]) {
			t.Errorf("the seal %q: %+v, want format %d", seal, r, newer)
		}
	}
}

func TestASealThatFitsWhatCannotBeReadIsNone(t *testing.T) {
	for _, key := range sealedKeys(DefaultKey) {
		annotations := State{Slots: Slots{0: "a"}, UIDs: Slots{0: "u-1"}, Epoch: 7}.Encode(DefaultKey, ownerUID)
		annotations[key] = `{"x":"a"}`
		annotations[SealKey] = Seal(annotations, DefaultKey, ownerUID)
		if r := Decode(annotations, DefaultKey, ownerUID, now); r.Sealed || r.Newer != 0 || len(r.Problems) != 1 {
			t.Errorf("got %+v, want damage", r)
		}
	}
}

func TestCloneSharesNothing(t *testing.T) {
	s := State{Slots: Slots{0: "a"}, Handover: Slots{0: "a"}, UIDs: Slots{0: "a"}, Quarantine: Quarantine{{Epoch: 5}}, FenceAfter: time.Second, Epoch: 7}
	c := s.Clone()
	if !c.SameContent(s) || c.Epoch != s.Epoch {
		t.Errorf("the copy of %+v is %+v", s, c)
	}
	for name, m := range map[string]Slots{"slots": c.Slots, "requests": c.Handover, "UIDs": c.UIDs} {
		if m[0] = "b"; s.Slots[0] != "a" || s.Handover[0] != "a" || s.UIDs[0] != "a" {
			t.Errorf("the copy shares its %s", name)
		}
	}
	if c.Quarantine[0].Epoch = 6; s.Quarantine[0].Epoch != 5 {
		t.Error("the copy shares its quarantine")
	}
}

func TestContentIsAllButTheEpoch(t *testing.T) {
	s := State{Slots: Slots{0: "a"}, Epoch: 7}
	for name, tc := range map[string]struct {
		other State
		same  bool
	}{
		"another epoch":      {State{Slots: Slots{0: "a"}, Epoch: 8}, true},
		"empty maps":         {State{Slots: Slots{0: "a"}, Handover: Slots{}, UIDs: Slots{}}, true},
		"another holder":     {State{Slots: Slots{0: "b"}}, false},
		"a request":          {State{Slots: Slots{0: "a"}, Handover: Slots{0: "b"}}, false},
		"a UID":              {State{Slots: Slots{0: "a"}, UIDs: Slots{0: "u"}}, false},
		"a fence-after":      {State{Slots: Slots{0: "a"}, FenceAfter: time.Second}, false},
		"a quarantined slot": {State{Slots: Slots{0: "a"}, Quarantine: Quarantine{{From: 1, To: 1, Epoch: 5}}}, false},
	} {
		if s.SameContent(tc.other) != tc.same {
			t.Errorf("%s: the same content is %t", name, !tc.same)
		}
	}
}

func TestWhatIsEmptyIsNotWritten(t *testing.T) {
	empty := State{Slots: Slots{}, Handover: Slots{}, UIDs: Slots{}, Quarantine: Quarantine{}, Epoch: 7}.Encode(DefaultKey, ownerUID)
	if want := map[string]string{DefaultKey: "{}", EpochKey: "7", SealKey: empty[SealKey]}; !maps.Equal(empty, want) {
		t.Errorf("an empty state is written as %v", empty)
	}
	small := State{UIDs: Slots{0: "u"}, Handover: Slots{0: "a"}, FenceAfter: 1, Quarantine: Quarantine{{Epoch: 5}}, Epoch: 7}
	least := small.Encode(DefaultKey, ownerUID)
	if got, want := small.size(), Size(least); got != want {
		t.Errorf("its size is foretold as %d, it is %d", got, want)
	}
	for _, key := range Keys(DefaultKey) {
		if _, there := least[key]; !there {
			t.Errorf("%s is not written", key)
		}
	}
}

// Of 5,000 pods two have the same short UID once in 300 times.
func TestTwoPodsMayHaveOneShortUID(t *testing.T) {
	want := State{Slots: Slots{0: "a", 1: "b"}, UIDs: Slots{0: "0b7d7f3e", 1: "0b7d7f3e"}, Epoch: 7}
	if r := Decode(want.Encode(DefaultKey, ownerUID), DefaultKey, ownerUID, now); !r.Sealed || !r.State.SameContent(want) {
		t.Errorf("got %+v", r)
	}
}

func TestShortUID(t *testing.T) {
	for uid, want := range map[string]string{ownerUID: "0b7d7f3e", "u-1": "u-1", "": ""} {
		if got := ShortUID(uid); got != want {
			t.Errorf("ShortUID(%q) = %q, want %q", uid, got, want)
		}
	}
}

func TestDecodeNothing(t *testing.T) {
	r := Decode(map[string]string{"other": "x"}, DefaultKey, ownerUID, now)
	if r.Present || r.Sealed || len(r.Problems) > 0 {
		t.Errorf("an owner without our annotations reads as %+v", r)
	}
}

func TestDecodeNamesEachProblem(t *testing.T) {
	for key, value := range map[string]string{
		DefaultKey:  `{"01":"a"}`,
		HandoverKey: `{"0":`,
		UIDsKey:     `[]`,
		EpochKey:    `12x`,
	} {
		r := Decode(map[string]string{key: value}, DefaultKey, ownerUID, now)
		if len(r.Problems) != 1 || r.Problems[0].Key != key || !strings.Contains(r.Problems[0].Error(), key) {
			t.Errorf("%s=%s: problems %v", key, value, r.Problems)
		}
	}
}

// An Event has them all: of one damage there should be one text.
func TestProblemsAreToldInOrderAndQuoteTheDamage(t *testing.T) {
	annotations := map[string]string{}
	want := []string{DefaultKey, HandoverKey, UIDsKey, EpochKey, FenceAfterKey, QuarantineKey}
	for _, key := range want {
		annotations[key] = `"damage"`
	}
	got := make([]string, 0, len(want))
	for _, p := range Decode(annotations, DefaultKey, ownerUID, now).Problems {
		got = append(got, p.Key)
		if !strings.Contains(p.Error(), "damage") {
			t.Errorf("the damage is not quoted: %v", p)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems of %v, want %v", got, want)
	}
}

func TestUIDsInAForeignLayout(t *testing.T) {
	r := Decode(map[string]string{UIDsKey: `{ "0":"0b7d7f3e", "1":"0b7d7f3e" }`}, DefaultKey, ownerUID, now)
	if len(r.Problems) > 0 || len(r.State.UIDs) != 2 {
		t.Errorf("two pods with one short UID read as %+v", r)
	}
}

func TestTheLargestEpochIsWhatEveryReaderOfJSONKeeps(t *testing.T) {
	const largest = 9007199254740991
	if err := CheckEpoch(largest, AnyTime()); err != nil {
		t.Error(err)
	}
	for _, at := range []time.Time{AnyTime(), now} {
		if err := CheckEpoch(largest+1, at); err == nil || !strings.Contains(err.Error(), "not in [1, 2^53 - 1]") {
			t.Errorf("one more: %v", err)
		}
	}
}

func TestEpochBounds(t *testing.T) {
	ahead := now.Add(24 * time.Hour).UnixMilli()
	for text, good := range map[string]bool{
		"1": true, strconv.FormatInt(ahead, 10): true,
		"0": false, "-1": false, "": false, "01": false, "1.5": false, "1e3": false,
		strconv.FormatInt(ahead+1, 10): false, strconv.FormatInt(MaxEpoch+1, 10): false, "99999999999999999999": false,
	} {
		r := Decode(map[string]string{EpochKey: text}, DefaultKey, ownerUID, now)
		if good != (len(r.Problems) == 0) {
			t.Errorf("epoch %q: problems %v", text, r.Problems)
		}
	}
}

func TestReceipts(t *testing.T) {
	holds := Receipt{UID: "u-1", Owner: testOwner, ID: 3, Epoch: 1795219200123, HandsOver: true}
	if got, want := holds.Encode(), `{"uid":"u-1","owner":"Deployment/worker","id":3,"epoch":1795219200123,"handsOver":true}`; got != want {
		t.Errorf("a receipt is %s, want %s", got, want)
	}
	gave := Receipt{UID: "u-1", Owner: testOwner, GaveUp: true}
	waits := Receipt{UID: "u-1", Owner: testOwner, Waits: true}
	if got, want := waits.Encode(), `{"uid":"u-1","owner":"Deployment/worker","waits":true}`; got != want {
		t.Errorf("encoded %s, want %s", got, want)
	}
	if got, err := ParseReceipt(waits.Encode(), time.Now()); err != nil || !reflect.DeepEqual(got, waits) || got.Locks() {
		t.Errorf("a sign of life is read as %+v, %v", got, err)
	}
	if got, want := gave.Encode(), `{"uid":"u-1","owner":"Deployment/worker","gaveUp":true}`; got != want {
		t.Errorf("a receipt that gave up is %s, want %s", got, want)
	}
	zero := Receipt{UID: "u-1", Owner: testOwner, Epoch: 1}
	for _, want := range []Receipt{holds, gave, zero} {
		got, err := ReceiptOf(map[string]string{ReceiptKey: want.Encode()}, "u-1", testOwner, now)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("ReceiptOf(%s) = %+v, %v", want.Encode(), got, err)
		}
	}
	for name, args := range map[string][2]string{"a copied pod": {"u-2", testOwner}, "another owner": {"u-1", "Deployment/other"}} {
		got, err := ReceiptOf(map[string]string{ReceiptKey: holds.Encode()}, args[0], args[1], now)
		if got != nil || !errors.Is(err, ErrForeignReceipt) {
			t.Errorf("%s has a receipt: %+v, %v", name, got, err)
		}
	}
	if got, err := ReceiptOf(nil, "u-1", testOwner, now); got != nil || err != nil {
		t.Errorf("no annotations: %+v, %v", got, err)
	}
}

// What is read, by what stands there. Fields that do not go together are not written by idalloc.
func TestParseReceipt(t *testing.T) {
	for text, want := range map[string]Receipt{
		`"gaveUp":true,"waits":true`:                           {GaveUp: true},
		`"gaveUp":true,"gives":0,"failed":2`:                   {GaveUp: true, Gives: true, Failed: 2},
		`"gaveUp":true,"gives":2147483646`:                     {GaveUp: true, Gives: true, ID: MaxID},
		`"gaveUp":true,"gives":2147483647`:                     {GaveUp: true},
		`"gaveUp":true,"gives":-1`:                             {GaveUp: true},
		`"waits":true,"failed":3`:                              {Waits: true, Failed: 3},
		`"waits":true,"failed":-3`:                             {Waits: true},
		`"waits":true,"failed":1001`:                           {Waits: true, Failed: 1000},
		`"id":2147483646,"epoch":7,"failed":1`:                 {ID: MaxID, Epoch: 7, Failed: 1},
		`"id":3,"epoch":7,"handsOver":true,"fenceAfter":"30s"`: {ID: 3, Epoch: 7, HandsOver: true, FenceAfter: 30 * time.Second},
		`"id":3,"epoch":7,"fenceAfter":"soon"`:                 {ID: 3, Epoch: 7, FenceAfter: -1},
	} {
		want.UID, want.Owner = "u", "o"
		if got, err := ParseReceipt(`{"uid":"u","owner":"o",`+text+`}`, now); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestOneReceiptSaysOneThing(t *testing.T) {
	for want, r := range map[string]Receipt{
		`"gaveUp":true,"failed":2`:             {GaveUp: true, Waits: true, HandsOver: true, FenceAfter: time.Second, Epoch: 7, Failed: 2},
		`"gaveUp":true,"gives":3`:              {GaveUp: true, Gives: true, ID: 3, Epoch: 7},
		`"waits":true`:                         {Waits: true, Gives: true, ID: 3, Epoch: 7},
		`"id":3,"epoch":7`:                     {Gives: true, ID: 3, Epoch: 7},
		`"id":3,"epoch":7,"fenceAfter":"-1ns"`: {ID: 3, Epoch: 7, FenceAfter: -1},
	} {
		r.UID, r.Owner = "u", "o"
		if got := r.Encode(); got != `{"uid":"u","owner":"o",`+want+`}` {
			t.Errorf("%+v is written as %s, want %s", r, got, want)
		}
	}
}

func TestNoReceipt(t *testing.T) {
	var none *Receipt
	if none.Locks() || none.Failures() != 0 {
		t.Error("where there is no receipt, something is locked or has failed")
	}
	if got := (&Receipt{Failed: 2}).Failures(); got != 2 {
		t.Errorf("%d failures, want 2", got)
	}
	if _, err := ReceiptOf(map[string]string{ReceiptKey: "x"}, "u", "o", now); err == nil || errors.Is(err, ErrForeignReceipt) {
		t.Errorf("what cannot be read: %v", err)
	}
}

func TestBrokenReceipts(t *testing.T) {
	for _, text := range []string{
		``, `x`, `[]`, `{}`, `{"uid":"u"}`, `{"uid":"u","owner":"o"}`, `{"uid":"u","owner":"o","id":-1,"epoch":1}`,
		`{"owner":"o","id":1,"epoch":1}`, `{"uid":"u","id":1,"epoch":1}`, `{"uid":"u","owner":"o","id":2147483647,"epoch":1}`,
		`{"uid":"u","owner":"o","id":1}`, `{"uid":"u","owner":"o","id":"1","epoch":1}`, `{"uid":"u","owner":"o","id":1,"epoch":9007199254740992}`,
		fmt.Sprintf(`{"uid":"u","owner":"o","id":1,"epoch":%d}`, now.Add(MaxAhead+time.Minute).UnixMilli()),
	} {
		if r, err := ParseReceipt(text, now); err == nil {
			t.Errorf("ParseReceipt(%s) = %+v, want an error", text, r)
		}
	}
}

func TestAReceiptWithABadEpochStillNamesItsSlot(t *testing.T) {
	for _, epoch := range []int64{0, -1, MaxEpoch + 1, now.Add(MaxAhead + time.Minute).UnixMilli()} {
		text := fmt.Sprintf(`{"uid":"u","owner":"o","id":7,"epoch":%d,"fenceAfter":"30s"}`, epoch)
		r, err := ReceiptOf(map[string]string{ReceiptKey: text}, "u", "o", now)
		if !errors.Is(err, ErrBadEpoch) || r == nil || r.ID != 7 || r.Epoch != 0 || r.FenceAfter != 30*time.Second {
			t.Errorf("ReceiptOf(%s) = %+v, %v: a wrong clock must not free a slot", text, r, err)
		}
	}
}

func FuzzParseReceipt(f *testing.F) {
	f.Add(`{"uid":"u-1","owner":"Deployment/worker","id":3,"epoch":1795219200123,"handsOver":true}`)
	f.Add(`{"uid":"u-1","owner":"Deployment/worker","gaveUp":true}`)
	f.Add(`{"uid":"u-1","owner":"Deployment/worker","gaveUp":true,"gives":0}`)
	f.Add(`{"uid":"u-1","owner":"Deployment/worker","waits":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReceipt(text, now)
		if err != nil {
			return
		}
		again, err := ParseReceipt(r.Encode(), now)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%q reads as %+v, which does not survive a round trip: %+v, %v", text, r, again, err)
		}
	})
}

func TestSizeCountsKeysAndValues(t *testing.T) {
	if got := Size(map[string]string{"ab": "c", "d": ""}); got != 4 || SizeLimit != 258048 {
		t.Errorf("%d bytes of %d, want 4 of 258048, as the README says", got, SizeLimit)
	}
}

func TestWhatIsReplacedDoesNotCount(t *testing.T) {
	annotations := map[string]string{}
	for _, key := range Keys(DefaultKey) {
		annotations[key] = strings.Repeat("x", SizeLimit)
	}
	room := RoomOn(annotations, DefaultKey)
	room.All = 0 // what makes nothing larger always fits
	if err := room.Check(State{Slots: Slots{0: "a"}, Epoch: 7}, SizeLimit); err != nil {
		t.Error(err)
	}
}

func TestTheLastByteCounts(t *testing.T) {
	s := State{Slots: Slots{0: "a", 1: "b"}, Epoch: 7}
	room := SizeLimit - Size(s.Encode(DefaultKey, ownerUID)) - len("team")
	if err := (Room{Others: len("team") + room}).Check(s, SizeLimit); err != nil {
		t.Errorf("all of the limit: %v", err)
	}
	var large *TooLargeError
	for more, fits := range map[int]int{1: 1, len(`,"1":"b"`): 1, len(`,"1":"b"`) + 1: 0} {
		if err := (Room{Others: len("team") + room + more}).Check(s, SizeLimit); !errors.As(err, &large) || large.Fits != fits {
			t.Errorf("%d bytes more: %v, want that %d fit", more, err, fits)
		}
	}
}

func TestSizeIsCheckedBeforeWriting(t *testing.T) {
	s := State{Slots: Slots{}, Epoch: now.UnixMilli()}
	other := map[string]string{"team": "a"}
	fits := 0
	for id := 0; ; id++ {
		s.Slots[id] = fmt.Sprintf("worker-%053d", id) // 60 characters
		if len(s.Slots)*60 < SizeLimit*8/10 {
			continue // far from full
		}
		if Size(s.Encode(DefaultKey, ownerUID))+Size(other) > SizeLimit {
			break
		}
		if err := RoomOn(other, DefaultKey).Check(s, SizeLimit); err != nil {
			t.Fatalf("%d slots fit, but: %v", len(s.Slots), err)
		}
		fits = len(s.Slots)
	}
	err := RoomOn(other, DefaultKey).Check(s, SizeLimit)
	var large *TooLargeError
	if !errors.As(err, &large) {
		t.Fatalf("%d slots do not fit, but: %v", len(s.Slots), err)
	}
	if large.Fits != fits || large.Size <= large.Limit || large.Limit != SizeLimit {
		t.Errorf("got %+v, want Fits %d", large, fits)
	}
	for _, part := range []string{strconv.Itoa(large.Size), strconv.Itoa(large.Limit), strconv.Itoa(fits)} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %s: %v", part, err)
		}
	}
}

// README.md and docs/operations.md give these numbers.
func TestHowManyReplicasFit(t *testing.T) {
	for pod, fits := range map[string]int{"worker-6dc99c5c6-%05d": 5202, "worker-%d": 6698} {
		s := State{Slots: Slots{}, UIDs: Slots{}, Epoch: now.UnixMilli()}
		for id := range 12000 {
			s.Slots[id], s.UIDs[id] = fmt.Sprintf(pod, id), fmt.Sprintf("%08x", id)
		}
		var large *TooLargeError
		if err := (Room{}).Check(s, SizeLimit); !errors.As(err, &large) || large.Fits != fits {
			t.Errorf("pods %s: got %v, want %d replicas", pod, err, fits)
		}
	}
}
