package allocator

import (
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// A stream lags behind what this process read or wrote. What it says counts from that moment on.
func TestAHolderTakesNoStepBack(t *testing.T) {
	at := func(version string, count int) store.Owner {
		return store.Owner{UID: "owner", ResourceVersion: version, Count: count}
	}
	anew := at("3", 4)
	anew.UID = "created again"
	for name, tc := range map[string]struct {
		heard store.Owner
		want  int // the count that is known then
	}{
		"an older moment":                      {at("9", 1), 2},
		"the same one":                         {at("10", 2), 2},
		"a newer one":                          {at("11", 3), 3},
		"one of an owner that was made anew":   {anew, 4},
		"one whose version cannot be compared": {at("later", 5), 5},
	} {
		h := &held{}
		h.adopt(at("10", 2))
		if h.hear(tc.heard); h.view.Count != tc.want {
			t.Errorf("%s: the count is %d, want %d", name, h.view.Count, tc.want)
		}
	}
	h := &held{}
	h.adopt(at("10", 2))
	h.hear(at("12", 3))
	if h.hear(at("11", 1)); h.view.Count != 1 {
		t.Error("the stream has caught up, and what it says does not count")
	}
}
