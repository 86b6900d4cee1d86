package assignment

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// naive is a quarantine as a table: the epochs of the slots 0 to naiveTop-1, zero for none, and that of all beyond.
type naive struct {
	ids    [naiveTop]int64
	beyond int64
}

const naiveTop = 12

func (n *naive) with(from, to int, epoch int64) {
	for id := max(from, 0); id <= min(to, naiveTop-1); id++ {
		if n.ids[id] == 0 {
			n.ids[id] = epoch
		}
	}
	if to == MaxID && n.beyond == 0 {
		n.beyond = epoch
	}
}

func (n *naive) without(ids []int) {
	for _, id := range ids {
		n.ids[id] = 0
	}
}

func (n *naive) drop(epoch int64) {
	for id, e := range n.ids {
		if e == epoch {
			n.ids[id] = 0
		}
	}
	if n.beyond == epoch {
		n.beyond = 0
	}
}

func (n *naive) epochs() []int64 {
	all := slices.DeleteFunc(append(slices.Clone(n.ids[:]), n.beyond), func(e int64) bool { return e == 0 })
	slices.Sort(all)
	return slices.Compact(all)
}

// genQuarantine builds a quarantine and the table that it must agree with, by the same random steps.
func genQuarantine(t *rapid.T) (Quarantine, naive) {
	var q Quarantine
	var n naive
	epochs := rapid.Int64Range(1, 4)
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		before := slices.Clone(q)
		was := q
		switch rapid.SampledFrom([]string{"with", "each", "open", "without", "drop"}).Draw(t, "step") {
		case "with":
			from := rapid.IntRange(0, naiveTop-1).Draw(t, "from")
			to := rapid.IntRange(0, naiveTop-1).Draw(t, "to") // below from: nothing
			epoch := epochs.Draw(t, "epoch")
			q = q.With(from, to, epoch)
			n.with(from, to, epoch)
		case "each":
			ids := rapid.SliceOfDistinct(rapid.IntRange(0, naiveTop-1), rapid.ID[int]).Draw(t, "each")
			slices.Sort(ids)
			epoch := epochs.Draw(t, "epoch")
			q = q.WithEach(ids, epoch)
			for _, id := range ids {
				n.with(id, id, epoch)
			}
		case "open":
			from, epoch := rapid.IntRange(0, naiveTop).Draw(t, "from"), epochs.Draw(t, "epoch")
			q = q.With(from, MaxID, epoch)
			n.with(from, MaxID, epoch)
		case "without":
			ids := rapid.SliceOfDistinct(rapid.IntRange(0, naiveTop-1), rapid.ID[int]).Draw(t, "ids")
			slices.Sort(ids)
			q = q.Without(ids, nil)
			n.without(ids)
		case "drop":
			epoch := epochs.Draw(t, "epoch")
			q = q.Without(nil, func(s Span) bool { return s.Epoch == epoch })
			n.drop(epoch)
		}
		if !slices.Equal(was, before) {
			t.Fatalf("a step changed its input from %v to %v", before, was)
		}
	}
	return q, n
}

func checkAgrees(t *rapid.T, q Quarantine, n naive) {
	since := func(id int) int64 {
		epoch, ok := q.Since(id)
		if ok != (epoch != 0) {
			t.Fatalf("%v.Since(%d) = %d, %t", q, id, epoch, ok)
		}
		return epoch
	}
	for id, want := range n.ids {
		if got := since(id); got != want {
			t.Fatalf("slot %d of %v is in quarantine since %d, want %d", id, q, got, want)
		}
	}
	for _, id := range []int{naiveTop + 1, 1000, MaxID} {
		if got := since(id); got != n.beyond {
			t.Fatalf("slot %d of %v is in quarantine since %d, want %d", id, q, got, n.beyond)
		}
	}
	if got, want := q.Epochs(), n.epochs(); !slices.Equal(got, want) {
		t.Fatalf("the epochs of %v are %v, want %v", q, got, want)
	}
}

func TestQuarantineAgreesWithATable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, n := genQuarantine(t)
		checkAgrees(t, q, n)
		if len(q) == 0 && q != nil {
			t.Fatal("an empty quarantine is not nil: equal states must be equal")
		}
		for i := 1; i < len(q); i++ {
			if q[i].From <= q[i-1].To || (q[i].From == q[i-1].To+1 && q[i].Epoch == q[i-1].Epoch) {
				t.Fatalf("%v is not in its shortest form", q)
			}
		}
	})
}

func TestQuarantineRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, n := genQuarantine(t)
		got, err := ParseQuarantine(want.Encode(), now)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("ParseQuarantine(%s) = %v, %v, want %v", want.Encode(), got, err, want)
		}
		checkAgrees(t, got, n)
	})
}

func TestQuarantineEncodeIsCanonical(t *testing.T) {
	q := Quarantine(nil).With(12, MaxID, 7).With(0, 3, 5).With(9, 9, 5).With(7, 7, 7)
	if got, want := q.Encode(), `{"5":"0-3,9","7":"7,12-"}`; got != want {
		t.Errorf("Encode() = %s, want %s", got, want)
	}
	if got, want := Quarantine(nil).With(MaxID, MaxID, 7).Encode(), `{"7":"2147483646"}`; got != want {
		t.Errorf("the last slot encodes as %s, want %s", got, want)
	}
	if got := (Quarantine)(nil).Encode(); got != "{}" {
		t.Errorf("no quarantine encodes as %s, want {}", got)
	}
}

func TestParseQuarantineRefuses(t *testing.T) {
	const noObject = `not a JSON object of strings`
	for name, tc := range map[string]struct{ text, says string }{
		"nothing":               {``, noObject},
		"not JSON":              {`soon`, noObject},
		"null":                  {`null`, noObject},
		"a list":                {`["0"]`, noObject},
		"a number for slots":    {`{"5":0}`, noObject},
		"null for slots":        {`{"5":null}`, `not an id: ""`},
		"no slots":              {`{"5":""}`, `not an id: ""`},
		"an empty range":        {`{"5":"0,,1"}`, `not an id: ""`},
		"a comma at the end":    {`{"5":"0,"}`, `not an id: ""`},
		"a negative id":         {`{"5":"-1"}`, `not an id: ""`},
		"a leading zero":        {`{"5":"01"}`, `not an id: "01"`},
		"a space":               {`{"5":"0, 1"}`, `not an id: " 1"`},
		"a range backwards":     {`{"5":"3-1"}`, `not a range of ids: "3-1"`},
		"two dashes":            {`{"5":"1-2-3"}`, `not an id: "2-3"`},
		"a slot twice":          {`{"5":"0,0"}`, `id 0 stands twice`},
		"ranges that overlap":   {`{"5":"0-3,2-4"}`, `id 2 stands twice`},
		"a slot in two epochs":  {`{"5":"0-3","6":"3"}`, `id 3 stands twice`},
		"behind an open end":    {`{"5":"3-","6":"7"}`, `id 7 stands twice`},
		"an id beyond int32":    {`{"5":"2147483647"}`, `not an id: "2147483647"`},
		"an epoch of zero":      {`{"0":"1"}`, `epoch 0 is not in`},
		"an epoch with a zero":  {`{"05":"1"}`, `not an epoch: "05"`},
		"an epoch in words":     {`{"x":"1"}`, `not an epoch: "x"`},
		"an epoch of tomorrow":  {`{"9007199254740991":"1"}`, `ahead of the clock`},
		"an epoch too large":    {`{"9007199254740992":"1"}`, `is not in [1, 2^53 - 1]`},
		"no end":                {`{"5":"1"`, noObject},
		"something behind":      {`{"5":"1"}{}`, `something follows`},
		"an epoch twice":        {`{"5":"1","5":"2"}`, `not in canonical form`},
		"twice and not short":   {`{"5":"1-1,1"}`, `id 1 stands twice`},
		"a range of one":        {`{"5":"1-1"}`, `not in canonical form`},
		"ranges that touch":     {`{"5":"0-1,2"}`, `not in canonical form`},
		"ranges out of order":   {`{"5":"3,1"}`, `not in canonical form`},
		"damage in both":        {`{"x":"y"}`, `not an epoch: "x"`},
		"the last id as an end": {`{"5":"0-2147483646"}`, `not in canonical form`},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := ParseQuarantine(tc.text, now)
			if err == nil {
				t.Fatalf("ParseQuarantine(%s) = %v, want an error", tc.text, q)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the error does not fit into an Event: %d bytes", len(err.Error()))
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("the error does not say %s: %v", tc.says, err)
			}
		})
	}
	if _, err := ParseQuarantine(`{"5":"`+strings.Repeat("x", 1<<16)+`"}`, now); err == nil || len(err.Error()) > 400 {
		t.Error("an error must fit into an Event")
	}
}

// What ParseQuarantine accepts means the same after Encode.
func FuzzParseQuarantine(f *testing.F) {
	for _, seed := range []string{`{}`, `{"5":"0-3,9","7":"7,12-"}`, `{"5":"1","5":"2"}`, `{"5":"2147483646"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseQuarantine(text, now)
		if err != nil {
			return
		}
		again, err := ParseQuarantine(q.Encode(), now)
		if err != nil || !slices.Equal(again, q) {
			t.Fatalf("%q reads as %v, which does not survive a round trip: %v, %v", text, q, again, err)
		}
	})
}

func TestParseFenceAfter(t *testing.T) {
	for _, d := range []time.Duration{1, time.Second, 1500 * time.Millisecond, 30 * time.Second, time.Minute, MaxFenceAfter} {
		if got, err := ParseFenceAfter(d.String()); err != nil || got != d {
			t.Errorf("ParseFenceAfter(%s) = %s, %v", d, got, err)
		}
	}
	for says, texts := range map[string][]string{
		"not a duration": {``, `30`, `60s`, `1h`, `0.5m`, ` 3s`, `soon`, `-60s`},
		"is not in (0, ": {`0s`, `-1s`, `1h0m0.000000001s`},
	} {
		for _, text := range texts {
			if d, err := ParseFenceAfter(text); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("ParseFenceAfter(%q) = %s, %v, want an error that says %q", text, d, err, says)
			}
		}
	}
}

// The holder gives its id up after fence-after by its own clock, and its work stops within StopGrace. A
// planner's clock that runs 5 percent faster must still show less than the quarantine then.
func TestQuarantineOutlastsTheHolder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fenceAfter := time.Duration(rapid.Int64Range(1, int64(MaxFenceAfter)).Draw(t, "fence-after"))
		inUse := fenceAfter + StopGrace
		if q := QuarantineTime(fenceAfter); q <= inUse+inUse/20 {
			t.Fatalf("the quarantine of %s takes %s, the slot may be in use for %s", fenceAfter, q, inUse+inUse/20)
		}
	})
}

// What the documents say of a fence-after of half a minute.
func TestQuarantineTime(t *testing.T) {
	if got, want := QuarantineTime(30*time.Second), 43*time.Second; got != want {
		t.Errorf("a slot is in quarantine for %s, want %s: fence-after, ten seconds to stop, 5 percent, one second", got, want)
	}
}

func TestStrictStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, _ := genQuarantine(t)
		want := State{Slots: Slots{3: "a"}, FenceAfter: 3 * time.Second, Quarantine: q, Epoch: now.UnixMilli()}
		annotations := want.Encode(DefaultKey, ownerUID)
		r := Decode(annotations, DefaultKey, ownerUID, now)
		if !r.Sealed || len(r.Problems) > 0 || !r.State.SameContent(want) {
			t.Fatalf("Decode(%v) = %+v, want %+v", annotations, r, want)
		}
		for _, key := range []string{FenceAfterKey, QuarantineKey} {
			if _, ok := annotations[key]; !ok {
				continue
			}
			damaged := want.Encode(DefaultKey, ownerUID)
			delete(damaged, key)
			if Decode(damaged, DefaultKey, ownerUID, now).Sealed {
				t.Fatalf("the seal fits without %s", key)
			}
		}
	})
}
