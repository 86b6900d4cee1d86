package main

import "testing"

func TestANumberIsAPartitionOfATopic(t *testing.T) {
	const list = "# a comment\norders 0-2,6\n\npayments 3-4 # two\n"
	for number, want := range map[int]place{0: {"orders", 0}, 2: {"orders", 2}, 6: {"orders", 3}, 3: {"payments", 0}, 4: {"payments", 1}} {
		if got, ok, err := find(list, number); got != want || !ok || err != nil {
			t.Errorf("number %d: %v, %t, %v; want %v", number, got, ok, err, want)
		}
	}
	if got, ok, err := find(list, 5); ok || err != nil {
		t.Errorf("number 5: %v, %v; want none", got, err)
	}
	for _, wrong := range []string{"orders", "orders 0 1", "orders x"} {
		if _, _, err := find(wrong, 0); err == nil {
			t.Errorf("%q is no list", wrong)
		}
	}
}
