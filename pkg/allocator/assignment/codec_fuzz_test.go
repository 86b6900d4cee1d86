package assignment

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// maxQuoted is what an error may have in bytes, so that it fits into an Event.
const maxQuoted = 400

// annotationsOf puts the fuzzer's texts under idalloc's keys; an empty one is absent.
func annotationsOf(texts ...string) map[string]string {
	m := map[string]string{}
	for i, key := range sealedKeys(DefaultKey) {
		if texts[i] != "" {
			m[key] = texts[i]
		}
	}
	return m
}

// Whatever stands in an owner's annotations, Decode does not fail, says short sentences about what it
// cannot read, and the state that it returns survives a round trip.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, slots, epoch, handover, uids, fenceAfter, quarantine, seal string) {
		annotations := annotationsOf(slots, epoch, handover, uids, fenceAfter, quarantine)
		if seal != "" {
			annotations[SealKey] = seal
		}
		r := Decode(annotations, DefaultKey, ownerUID, now)
		if r.Present != (len(annotations) > 0) {
			t.Fatalf("%v: Present is %v", annotations, r.Present)
		}
		for _, p := range r.Problems {
			if len(p.Error()) > maxQuoted {
				t.Fatalf("a problem of %d bytes: %v", len(p.Error()), p)
			}
		}
		if r.State.Epoch == 0 {
			r.State.Epoch = 1 // none was there, or it was damaged: whoever writes gives a new one
		}
		checkStored(t, r.State)
	})
}

func checkStored(t *testing.T, s State) {
	t.Helper()
	stored := s.Encode(DefaultKey, ownerUID)
	again := Decode(stored, DefaultKey, ownerUID, now)
	if !again.Sealed || len(again.Problems) > 0 || again.State.Epoch != s.Epoch || !again.State.SameContent(s) {
		t.Fatalf("%+v is stored as %v and read as %+v", s, stored, again)
	}
	if !maps.Equal(again.State.Encode(DefaultKey, ownerUID), stored) {
		t.Fatalf("%v is not canonical", stored)
	}
}

// fits reports whether the seal in the annotations is that of the other values.
func fits(annotations map[string]string, owner string) bool {
	return annotations[SealKey] == Seal(annotations, DefaultKey, owner)
}

// A seal fits one set of values of one owner only: moving a byte from one value, or from one key, to another breaks it.
func FuzzSeal(f *testing.F) {
	f.Fuzz(func(t *testing.T, slots, epoch, handover, uids, fenceAfter, quarantine string, which uint8, other string) {
		annotations := annotationsOf(slots, epoch, handover, uids, fenceAfter, quarantine)
		sealed := maps.Clone(annotations)
		sealed[SealKey] = Seal(annotations, DefaultKey, ownerUID)
		r := Decode(sealed, DefaultKey, ownerUID, now)
		if readable := slots != "" && len(r.Problems) == 0; r.Sealed != readable {
			t.Fatalf("%v: Sealed is %v", sealed, r.Sealed)
		}
		if !strings.HasPrefix(sealed[SealKey], "1:"+epoch+":") {
			t.Fatalf("the seal %q does not begin with the format and the epoch %q", sealed[SealKey], epoch)
		}
		if other != ownerUID && (fits(sealed, other) || Decode(sealed, DefaultKey, other, now).Sealed) {
			t.Fatalf("the seal also fits on the owner %q: %v", other, sealed)
		}
		keys := Keys(DefaultKey)
		key := keys[int(which)%len(keys)]
		if old, there := sealed[key]; there && old == other {
			return
		}
		sealed[key] = other
		if fits(sealed, ownerUID) {
			t.Fatalf("the seal still fits when %s becomes %q: %v", key, other, sealed)
		}
		delete(sealed, key)
		if _, there := annotations[key]; (there || key == SealKey) && fits(sealed, ownerUID) {
			t.Fatalf("the seal still fits without %s: %v", key, sealed)
		}
	})
}

// A quarantine that is read does for every slot what its text says, also when slots are added and taken out.
func FuzzQuarantine(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string, from, to int, epoch int64) {
		q, err := ParseQuarantine(text, now)
		if err != nil {
			if len(err.Error()) > maxQuoted {
				t.Fatalf("an error of %d bytes: %v", len(err.Error()), err)
			}
			return
		}
		if q.Encode() != text {
			t.Fatalf("%q is accepted, but its canonical form is %q", text, q.Encode())
		}
		if from < 0 || to > MaxID || from > to || CheckEpoch(epoch, now) != nil {
			return
		}
		checkSpan(t, q, from, to, epoch)
	})
}

func checkSpan(t *testing.T, q Quarantine, from, to int, epoch int64) {
	t.Helper()
	before := q.Encode()
	with := q.With(from, to, epoch)
	for _, id := range []int{0, max(0, from-1), from, from + (to-from)/2, to, min(MaxID, to+1), MaxID} {
		got, ok := with.Since(id)
		want, was := q.Since(id)
		if !was && id >= from && id <= to {
			want, was = epoch, true
		}
		if got != want || ok != was {
			t.Fatalf("%s with %d to %d: slot %d is in quarantine since %d (%v), want %d (%v)", before, from, to, id, got, ok, want, was)
		}
	}
	out := with.Without([]int{from}, func(s Span) bool { return s.From > from && s.Epoch == epoch })
	if _, still := out.Since(from); still {
		t.Fatalf("slot %d is still in %s", from, out.Encode())
	}
	for _, each := range []Quarantine{with, out} {
		again, err := ParseQuarantine(each.Encode(), now)
		if err != nil || !slices.Equal(again, each) {
			t.Fatalf("%v does not survive a round trip: %v, %v", each, again, err)
		}
	}
	if q.Encode() != before {
		t.Fatalf("With or Without changed %s to %s", before, q.Encode())
	}
}

// A receipt is this pod's or it is none. One that cannot be read locks nothing, but one whose epoch is
// wrong still does.
func FuzzReceiptOf(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, uid, owner string) {
		r, err := ReceiptOf(map[string]string{ReceiptKey: text}, uid, owner, now)
		switch {
		case r == nil && err == nil:
			t.Fatalf("%q: neither a receipt nor an error", text)
		case r == nil:
			if len(err.Error()) > maxQuoted {
				t.Fatalf("an error of %d bytes: %v", len(err.Error()), err)
			}
			return
		case err != nil && (!errors.Is(err, ErrBadEpoch) || r.Epoch != 0):
			t.Fatalf("%q: %+v with %v", text, r, err)
		case r.UID != uid || r.Owner != owner || uid == "" || owner == "":
			t.Fatalf("%q counts as the receipt of %q for %q: %+v", text, uid, owner, r)
		case r.ID < 0 || r.ID > MaxID || r.FenceAfter > MaxFenceAfter:
			t.Fatalf("%q reads as %+v", text, r)
		}
		if err != nil || r.FenceAfter < 0 {
			return // its pod writes it again
		}
		again, err := ReceiptOf(map[string]string{ReceiptKey: r.Encode()}, uid, owner, now)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%q reads as %+v, which does not survive a round trip: %+v, %v", text, r, again, err)
		}
	})
}

// The size that is foretold is the size that is written, and the count that is said to fit does.
func FuzzCheckSize(f *testing.F) {
	f.Fuzz(func(t *testing.T, other []byte, pods uint16, length uint8, uids bool) {
		annotations := map[string]string{"example.com/other": strings.Repeat(string(other), 64)}
		s := State{Slots: Slots{}, UIDs: Slots{}, Epoch: now.UnixMilli()}
		for id := range int(pods) % 5000 {
			s.Slots[id] = strings.Repeat("w", int(length)%200) + strconv.Itoa(id)
			if uids {
				s.UIDs[id] = "u-" + strconv.Itoa(id)
			}
		}
		written := s.Encode(DefaultKey, ownerUID)
		maps.Copy(written, annotations)
		room := RoomOn(annotations, DefaultKey)
		err := room.Check(s, SizeLimit)
		if (err == nil) != (Size(written) <= SizeLimit) {
			t.Fatalf("%d bytes: %v", Size(written), err)
		}
		var tooLarge *TooLargeError
		if !errors.As(err, &tooLarge) {
			return
		}
		if tooLarge.Size != Size(written) || tooLarge.Fits >= len(s.Slots) {
			t.Fatalf("%d bytes for %d pods: %v", Size(written), len(s.Slots), err)
		}
		for _, id := range s.Slots.IDs()[tooLarge.Fits:] {
			delete(s.Slots, id)
			delete(s.UIDs, id)
		}
		if err := room.Check(s, SizeLimit); tooLarge.Fits > 0 && err != nil {
			t.Fatalf("%d pods were said to fit: %v", tooLarge.Fits, err)
		}
	})
}
