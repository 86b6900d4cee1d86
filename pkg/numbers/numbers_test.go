package numbers_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/numbers"
)

func assigned(id, count int) identity.Identity {
	return identity.Identity{State: identity.StateAssigned, ID: id, Count: count}
}

func ExampleSequenceStartIncrement() {
	me := identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5}
	if start, increment, ok := numbers.SequenceStartIncrement(me); ok {
		fmt.Printf("CREATE SEQUENCE orders_3 START WITH %d INCREMENT BY %d\n", start, increment)
	}
	// Output: CREATE SEQUENCE orders_3 START WITH 4 INCREMENT BY 5
}

func ExampleMachineID16() {
	me := identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5}
	fmt.Println(numbers.MachineID16(me))
	// Output: 3 <nil>
}

func TestSequencesOfDifferentIDsNeverMeet(t *testing.T) {
	seen := map[int64]int{}
	for id := range 5 {
		start, increment, ok := numbers.SequenceStartIncrement(assigned(id, 5))
		if !ok || start < 1 {
			t.Fatalf("id %d: %d, %d, %v", id, start, increment, ok)
		}
		for n := range int64(100) {
			v := start + n*increment
			if other, taken := seen[v]; taken {
				t.Fatalf("%d is drawn by id %d and id %d", v, other, id)
			}
			seen[v] = id
		}
	}
	if _, _, ok := numbers.SequenceStartIncrement(identity.Pending("a", "b")); ok {
		t.Error("an instance without an id has a sequence")
	}
}

func TestMachineID16(t *testing.T) {
	if got, err := numbers.MachineID16(assigned(math.MaxUint16, math.MaxUint16+1)); err != nil || got != math.MaxUint16 {
		t.Errorf("the highest number is %d, %v", got, err)
	}
	if got, err := numbers.MachineID16(assigned(0, 1)); err != nil || got != 0 {
		t.Errorf("the lowest number is %d, %v", got, err)
	}
	if _, err := numbers.MachineID16(assigned(math.MaxUint16+1, math.MaxUint16+2)); err == nil || !strings.Contains(err.Error(), "run at most 65536 replicas") {
		t.Errorf("error is %v", err)
	}
	if _, err := numbers.MachineID16(identity.Pending("a", "b")); !errors.Is(err, numbers.ErrNotAssigned) || !strings.Contains(err.Error(), "pending") {
		t.Errorf("error is %v", err)
	}
	if n, err := numbers.MachineID16(assigned(identity.None, 1)); err == nil {
		t.Errorf("without an id the machine number is %d", n)
	}
}
