package main

import (
	"slices"
	"testing"

	"github.com/idalloc/idalloc/pkg/placement"
)

func TestEachContenderGivesEachPartitionToOneMember(t *testing.T) {
	for _, c := range contenders() {
		t.Run(c.name, func(t *testing.T) {
			in := placement.Input{Partitions: 50, Members: []int{0, 2, 3, 7}}
			for range 2 { // from nothing, and when two have changed
				in.Owners, _ = c.divide(in)
				if !slices.Equal(in.Owners.IDs(), in.Members) {
					t.Fatalf("members %v, owners %s", in.Members, in.Owners)
				}
				given := 0
				for _, s := range in.Owners {
					given += s.Len()
				}
				if _, err := placement.ParseOwners(in.Owners.String(), 50); err != nil || given != 50 {
					t.Fatalf("%d are given: %s: %v", given, in.Owners, err)
				}
				in.Members = []int{0, 3, 4, 7}
			}
		})
	}
}

func TestAScriptCostsWhatItMust(t *testing.T) {
	costs := play(size{12, 3})
	find := func(script, contender string) cost {
		i := slices.IndexFunc(costs, func(c cost) bool { return c.script == script && c.contender == contender })
		if i < 0 {
			t.Fatalf("%s did not play %s", contender, script)
		}
		return costs[i]
	}
	for _, balanced := range []string{"sticky", "franz-go sticky", "franz-go cooperative-sticky"} {
		if c := find("one more", balanced); c.moves != 3 || c.ideal != 3 || c.balance != 0 || c.stickiness != 0.75 {
			t.Errorf("%+v", c)
		}
	}
	if c := find("one more", "even (averagely)"); c.moves != 6 || c.balance != 0 {
		t.Errorf("%+v", c)
	}
	if c := find("one more", "range"); c.moves != 6 || c.overIdeal() != 2 {
		t.Errorf("%+v", c)
	}
	if c := find("restart, one by one", "sticky"); c.steps != 6 || c.moves != 24 {
		t.Errorf("%+v", c)
	}
}

func TestARestartTakesEachOutAndPutsItBack(t *testing.T) {
	got := restart(upTo(2))
	if want := [][]int{{0, 1}, {1}, {0, 1}, {0}, {0, 1}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v", got)
	}
}
