package assignment

import (
	"bytes"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
)

// maxQuoted is the most bytes that an error may have, so that it fits into an Event.
const maxQuoted = 400

// annotationsOf puts the fuzzer's texts under idalloc's keys; an empty one is absent.
func annotationsOf(texts ...string) map[string]string {
	m := map[string]string{}
	for i, key := range Keys() {
		if texts[i] != "" {
			m[key] = texts[i]
		}
	}
	return m
}

// Whatever stands in an owner's annotations, Decode does not fail, says short sentences about what it
// cannot read, and the state that it returns survives a round trip.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, slots, handover, partitions string) {
		annotations := annotationsOf(slots, handover, partitions)
		r := Decode(annotations)
		if r.Present != (len(annotations) > 0) {
			t.Fatalf("%v: Present is %v", annotations, r.Present)
		}
		for _, p := range r.Problems {
			if len(p.Error()) > maxQuoted {
				t.Fatalf("a problem of %d bytes: %v", len(p.Error()), p)
			}
		}
		checkStored(t, r.State)
	})
}

func checkStored(t *testing.T, s State) {
	t.Helper()
	stored := s.Encode()
	again := Decode(stored)
	if len(again.Problems) > 0 {
		t.Fatalf("%+v is stored as %v and read as %+v", s, stored, again)
	}
	if !maps.Equal(again.State.Encode(), stored) {
		t.Fatalf("%v is not canonical", stored)
	}
}

// The size that is foretold is the size that is written, and the count that is said to fit does.
func FuzzCheckSize(f *testing.F) {
	f.Add(bytes.Repeat([]byte("x"), SizeLimit/64), uint16(0), uint8(0)) // others fill it, and no pod has a slot
	f.Fuzz(func(t *testing.T, other []byte, pods uint16, length uint8) {
		annotations := map[string]string{"example.com/other": strings.Repeat(string(other), 64)}
		s := State{Slots: Slots{}}
		for id := range int(pods) % 5000 {
			s.Slots[id] = strings.Repeat("w", int(length)%200) + strconv.Itoa(id)
		}
		written := s.Encode()
		maps.Copy(written, annotations)
		room := RoomOn(annotations)
		err := room.Check(s, SizeLimit)
		if (err == nil) != (Size(written) <= SizeLimit) {
			t.Fatalf("%d bytes: %v", Size(written), err)
		}
		var tooLarge *TooLargeError
		if !errors.As(err, &tooLarge) {
			return
		}
		if tooLarge.Size != Size(written) || tooLarge.Fits >= max(1, len(s.Slots)) {
			t.Fatalf("%d bytes for %d pods: %v", Size(written), len(s.Slots), err)
		}
		for _, id := range s.Slots.IDs()[tooLarge.Fits:] {
			delete(s.Slots, id)
		}
		if err := room.Check(s, SizeLimit); tooLarge.Fits > 0 && err != nil {
			t.Fatalf("%d pods were said to fit: %v", tooLarge.Fits, err)
		}
	})
}
