package dice

import (
	"slices"
	"testing"
)

func TestDiceOfEqualNamesRollEqualNumbers(t *testing.T) {
	one, other := Derive(1, "pod", "3"), Derive(1, "pod", "3")
	Derive(1, "another").Next() // what others roll changes nothing
	for range 3 {
		if a, b := one.Next(), other.Next(); a != b {
			t.Fatalf("%d and %d", a, b)
		}
	}
}

func TestDiceOfOtherNamesRollOtherNumbers(t *testing.T) {
	numbers := []uint64{
		Derive(1).Next(), Derive(2).Next(), Derive(1, "ab").Next(), Derive(1, "a", "b").Next(), Derive(1, "b", "a").Next(), Derive(1, "ab", "").Next(),
	}
	slices.Sort(numbers)
	if len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
		t.Errorf("two are equal: %v", numbers)
	}
}

func TestASampleHasNoItemTwice(t *testing.T) {
	items := []int{1, 2, 3, 4, 5}
	got := Sample(Derive(1, "sample"), items, 4)
	slices.Sort(got)
	if len(slices.Compact(got)) != 4 || !slices.Equal(items, []int{1, 2, 3, 4, 5}) {
		t.Errorf("the sample is %v, the items are %v", got, items)
	}
	if all := Sample(Derive(1), items, 9); len(all) != len(items) {
		t.Errorf("of five items nine are %v", all)
	}
}
