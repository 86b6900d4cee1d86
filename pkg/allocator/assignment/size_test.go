package assignment

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The size that is foretold is that of what is written, whatever the state has.
func TestTheSizeThatIsForetold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := func(name string) Slots {
			s := Slots{}
			for _, id := range rapid.SliceOfN(rapid.IntRange(0, 20_000), 0, 20).Draw(t, name) {
				s[id] = strings.Repeat("x", rapid.IntRange(1, 70).Draw(t, "length"))
			}
			return s
		}
		s := State{
			Slots: slots("slots"), UIDs: slots("uids"), Handover: slots("handover"), Epoch: rapid.Int64Range(1, MaxEpoch).Draw(t, "epoch"),
			FenceAfter: rapid.SampledFrom([]time.Duration{0, 1, 90 * time.Second, 12345 * time.Millisecond}).Draw(t, "fence"),
		}
		for _, from := range rapid.SliceOfN(rapid.IntRange(0, 20_000), 0, 10).Draw(t, "quarantine") {
			to := rapid.SampledFrom([]int{from, from, from + 1, from + 1000, MaxID}).Draw(t, "to")
			s.Quarantine = s.Quarantine.With(from, to, rapid.Int64Range(1, 12).Draw(t, "of"))
		}
		key := rapid.SampledFrom([]string{DefaultKey, "example.com/ids", "k"}).Draw(t, "key")
		others := map[string]string{"team": "a", "example.com/" + key: "b"}
		room := RoomOn(others, key)
		maps.Copy(others, s.Encode(key, "uid"))
		written := Size(others)
		if room.Check(s, written) != nil || room.Check(s, written-1) == nil {
			t.Fatalf("%d bytes were written: %v", written, room.Check(s, 0))
		}
		if again := RoomOn(others, key); again.Others != room.Others || again.All != written {
			t.Fatalf("%d bytes, and before that %+v: %+v", written, room, again)
		}
	})
}

// Somebody else may fill an owner beyond what idalloc does. A slot can change hands all the same.
func TestWhatMakesNothingLargerFits(t *testing.T) {
	full := State{Slots: Slots{0: "worker-a", 1: "worker-b"}, UIDs: Slots{0: "aaaaaaaa", 1: "bbbbbbbb"}, Epoch: now.UnixMilli()}
	annotations := full.Encode(DefaultKey, ownerUID)
	annotations["team"] = strings.Repeat("x", SizeLimit)
	room := RoomOn(annotations, DefaultKey)
	next := full.Clone()
	next.Slots[1], next.UIDs[1], next.Epoch = "worker-c", "cccccccc", full.Epoch+1
	if err := room.Check(next, SizeLimit); err != nil {
		t.Errorf("another holder of one size: %v", err)
	}
	next.Slots[1] += "c"
	var large *TooLargeError
	if err := room.Check(next, SizeLimit); !errors.As(err, &large) || large.Size != room.All+1 || large.Fits != 0 {
		t.Errorf("one byte more: %v, of %+v", err, room)
	}
}

func TestTheErrorSaysWhatIsKeptFree(t *testing.T) {
	for limit, want := range map[int]string{
		SizeLimit:   "258048 are allowed (Kubernetes' 262144 less 4096 kept free",
		RepairLimit: "259072 are allowed (Kubernetes' 262144 less 3072 kept free",
	} {
		err := Room{Others: AnnotationLimit}.Check(State{}, limit)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "idalloc: the owner's") {
			t.Errorf("%v, which does not say %q", err, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for _, id := range []int{0, 9, 10, 99, 100, 12345, MaxID} {
		if got := digits(id); got != len(strconv.Itoa(id)) {
			t.Errorf("%d has %d digits", id, got)
		}
	}
}
