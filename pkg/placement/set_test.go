package placement

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is a set as plainly as Go has it.
type model map[int]bool

func modelOf(s Set) model {
	m := model{}
	for p := range s.All() {
		m[p] = true
	}
	return m
}

// set returns the set with the partitions of the model.
func (m model) set() Set { return Of(slices.Collect(maps.Keys(m))...) }

// genSet draws a set with ranges of any length, and partitions that often touch.
func genSet() *rapid.Generator[Set] {
	return rapid.Custom(func(t *rapid.T) Set {
		var s Set
		for range rapid.IntRange(0, 6).Draw(t, "ranges") {
			first := rapid.IntRange(0, 40).Draw(t, "first")
			s = s.Union(Between(first, first+rapid.IntRange(0, 8).Draw(t, "more")))
		}
		return s
	})
}

func TestASetIsWhatAMapOfBoolsIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genSet().Draw(t, "a"), genSet().Draw(t, "b")
		inA, inB := modelOf(a), modelOf(b)
		union, common, rest := model{}, model{}, model{}
		for p := range 60 {
			if inA[p] || inB[p] {
				union[p] = true
			}
			if inA[p] && inB[p] {
				common[p] = true
			}
			if inA[p] && !inB[p] {
				rest[p] = true
			}
			if a.Contains(p) != inA[p] {
				t.Errorf("%q contains %d: %t", a, p, a.Contains(p))
			}
		}
		for _, c := range []struct {
			what string
			got  Set
			want model
		}{{"union", a.Union(b), union}, {"intersection", a.Intersect(b), common}, {"difference", a.Minus(b), rest}} {
			if !c.got.Equal(c.want.set()) || c.got.Len() != len(c.want) || c.got.Empty() != (len(c.want) == 0) {
				t.Errorf("the %s of %q and %q is %q, want %q", c.what, a, b, c.got, c.want.set())
			}
		}
		if a.Subset(b) != (len(rest) == 0) {
			t.Errorf("%q is a subset of %q: %t", a, b, a.Subset(b))
		}
		if a.Equal(b) != maps.Equal(inA, inB) {
			t.Errorf("%q equals %q: %t", a, b, a.Equal(b))
		}
	})
}

func TestOneSetHasOneText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genSet().Draw(t, "a")
		shuffled := rapid.Permutation(slices.Collect(a.All())).Draw(t, "shuffled")
		if b := Of(shuffled...); b.String() != a.String() {
			t.Errorf("the same partitions print as %q and as %q", a, b)
		}
		if b, err := Parse(a.String(), 60); err != nil || !b.Equal(a) {
			t.Errorf("%q reads as %q: %v", a, b, err)
		}
	})
}

func TestAnOperationLeavesItsSetsAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genSet().Draw(t, "a"), genSet().Draw(t, "b")
		before := a.String() + " " + b.String()
		union := a.Union(b)
		results := []Set{union.Minus(Of(3)), union.Intersect(b), union.Union(Of(70, 72))}
		if after := a.String() + " " + b.String(); after != before {
			t.Errorf("%s became %s", before, after)
		}
		if len(results) == 0 || !union.Equal(a.Union(b)) {
			t.Errorf("the union became %q", union)
		}
	})
}

func TestSetsOfLargeAndOfNoPartitions(t *testing.T) {
	for _, c := range []struct {
		got  Set
		want string
	}{
		{Set{}, ""},
		{Of(), ""},
		{Of(5, 3, 4, 3, 40), "3-5,40"},
		{Of(-1, 0), "0"},
		{Between(4, 3), ""},
		{Between(-5, 2), "0-2"},
		{Between(7, 7), "7"},
		{Between(1<<20, 1<<21), "1048576-2097152"},
		{Between(0, 9).Minus(Between(3, 4)).Minus(Of(0, 9)), "1-2,5-8"},
		{Between(0, 9).Minus(Between(0, highest)), ""},
		{Between(highest, math.MaxInt), "2147483646"},
		{Of(highest, math.MaxInt32, math.MaxInt), "2147483646"},
		{Between(0, 3).Union(Between(4, 9)), "0-9"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if huge := Between(0, math.MaxInt); huge.Len() != math.MaxInt32 || !huge.Contains(1<<30) || huge.Contains(math.MaxInt32) {
		t.Errorf("the largest set has %d partitions", huge.Len())
	}
}

func TestRangesAreAsFewAsPossible(t *testing.T) {
	var got [][2]int
	for first, last := range Of(1, 2, 3, 7, 9, 8).Ranges() {
		got = append(got, [2]int{first, last})
	}
	if want := [][2]int{{1, 3}, {7, 9}}; !slices.Equal(got, want) {
		t.Errorf("the ranges are %v, want %v", got, want)
	}
	for p := range Between(0, math.MaxInt).All() {
		if p == 3 {
			break
		}
	}
	for first := range Of(1, 3).Ranges() {
		if first != 1 {
			t.Errorf("after a break comes %d", first)
		}
		break
	}
}
