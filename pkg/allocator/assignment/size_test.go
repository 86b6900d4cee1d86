package assignment

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/placement"
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
		s := State{Slots: slots("slots"), Handover: slots("handover")}
		if rapid.Bool().Draw(t, "partitions") {
			s.Row = &Row{Count: 8, Strategy: "sticky", Owners: placement.Owners{0: placement.Of(0, 1, 2, 3), 7: placement.Of(5, 7)}}
		}
		others := map[string]string{"team": "a", "example.com/" + Key: "b"}
		room := RoomOn(others)
		maps.Copy(others, s.Encode())
		written := Size(others)
		if room.Check(s, written) != nil || room.Check(s, written-1) == nil {
			t.Fatalf("%d bytes were written: %v", written, room.Check(s, 0))
		}
		if again := RoomOn(others); again.Others != room.Others || again.All != written {
			t.Fatalf("%d bytes, and before that %+v: %+v", written, room, again)
		}
	})
}

// Other programs may fill an owner beyond what idalloc does. A slot can change hands all the same.
func TestWhatMakesNothingLargerFits(t *testing.T) {
	full := State{Slots: Slots{0: "worker-a", 1: "worker-b"}}
	annotations := full.Encode()
	annotations["team"] = strings.Repeat("x", SizeLimit)
	room := RoomOn(annotations)
	next := State{Slots: Slots{0: "worker-a", 1: "worker-c"}}
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
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "the owner's") {
			t.Errorf("%v, which does not say %q", err, want)
		}
	}
}

func TestTheLastByteCounts(t *testing.T) {
	s := State{Slots: Slots{0: "a", 1: "b"}}
	room := SizeLimit - Size(s.Encode()) - len("team")
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

// docs/contract.md and docs/operations.md give these numbers.
func TestHowManyReplicasFit(t *testing.T) {
	for pod, fits := range map[string]int{"worker-6dc99c5c6-%05d": 8097, "worker-%d": 12184} {
		s := State{Slots: Slots{}}
		for id := range 20000 {
			s.Slots[id] = fmt.Sprintf(pod, id)
		}
		var large *TooLargeError
		if err := (Room{}).Check(s, SizeLimit); !errors.As(err, &large) || large.Fits != fits {
			t.Errorf("pods %s: got %v, want %d replicas", pod, err, fits)
		}
	}
}
