package placement

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genInput draws an input with up to 40 partitions and 8 ids, and owners that may be anything but two of one partition.
func genInput() *rapid.Generator[Input] {
	return rapid.Custom(func(t *rapid.T) Input {
		p, n := rapid.IntRange(0, 40).Draw(t, "partitions"), rapid.IntRange(0, 8).Draw(t, "count")
		return Input{
			Partitions: p, Count: n,
			Members: rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 0, 8, rapid.ID[int]).Draw(t, "members"),
			Owners:  ownersOf(rapid.SliceOfN(rapid.IntRange(none, 9), p, p+5).Draw(t, "owners")),
			Target:  ownersOf(rapid.SliceOfN(rapid.IntRange(none, 9), p, p).Draw(t, "target")),
		}
	})
}

func strategies(t *testing.T) map[string]Strategy {
	t.Helper()
	all := map[string]Strategy{}
	for _, name := range Names() {
		s, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = s
	}
	return all
}

func TestANameThatIsUnknownIsAnError(t *testing.T) {
	s, err := Named("range-2")
	if s != nil || !errors.Is(err, ErrUnknownStrategy) || !strings.Contains(err.Error(), `"range-2": use one of `+strings.Join(Names(), ", ")) {
		t.Errorf("range-2 is known: %v", err)
	}
	if !slices.Contains(Names(), DefaultName) {
		t.Errorf("the default %s is not among %v", DefaultName, Names())
	}
}

func TestEachStrategyHasCases(t *testing.T) {
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if _, err := os.Stat("testdata/" + name + ".txt"); err != nil {
			t.Errorf("%s has no cases: %v", name, err)
		}
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("testdata/README.md does not list %s", name)
		}
	}
}

func TestATargetListsTheMembersAndGivesEachPartitionOnce(t *testing.T) {
	for name, strategy := range strategies(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := genInput().Draw(t, "in")
				target := strategy(in)
				checkOwners(t, target, in.Partitions)
				if members := slices.Sorted(slices.Values(in.Members)); !slices.Equal(target.IDs(), members) {
					t.Fatalf("members %v, but the target is %s", in.Members, target)
				}
				given := 0
				for _, s := range target {
					given += s.Len()
				}
				noPrimaries := name == NamePrimary && in.Count == 0
				if len(in.Members) > 0 && !noPrimaries && given != in.Partitions {
					t.Fatalf("%d of %d partitions are given: %s", given, in.Partitions, target)
				}
			})
		})
	}
}

func TestATargetDependsOnNoOrderAndChangesNoInput(t *testing.T) {
	for name, strategy := range strategies(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := genInput().Draw(t, "in")
				other := in
				other.Members = rapid.Permutation(in.Members).Draw(t, "other order")
				other.Members = append(other.Members, other.Members...)
				before, target := in.Owners.String()+in.Target.String(), in.Target.String()
				if a, b := strategy(in), strategy(other); !a.Equal(b) {
					t.Fatalf("one input, two targets: %s and %s", a, b)
				}
				if in.Owners.String()+target != before || in.Target.String() != target {
					t.Fatal("the strategy changed its input")
				}
			})
		})
	}
}

// An exhaustive test tries all small maps. This one goes a long way in larger ones.
func TestNoPartitionMovesTwice(t *testing.T) {
	for name, strategy := range strategies(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := genInput().Draw(t, "in")
				target := strategy(in)
				owner := listOf(in.Owners, in.Partitions+5)[:in.Partitions]
				goal := listOf(target, in.Partitions)
				for range rapid.IntRange(0, 20).Draw(t, "steps") {
					if in.Partitions == 0 {
						break
					}
					p := rapid.IntRange(0, in.Partitions-1).Draw(t, "partition")
					if owner[p] = goal[p]; rapid.Bool().Draw(t, "on the way") && owner[p] != listOf(in.Owners, in.Partitions+5)[p] {
						owner[p] = none
					}
				}
				before := in.Owners
				in.Owners = ownersOf(owner)
				if now := strategy(in); !now.Equal(target) {
					t.Fatalf("the target of %s is %s, but from %s on the way it is %s", before, target, in.Owners, now)
				}
			})
		})
	}
}

// Two owners of one partition are a fault of the caller. The target is a good one all the same.
func TestTwoOwnersOfOnePartitionDoNoHarm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		for id := range in.Owners {
			in.Owners[id] = in.Owners[id].Union(genSet().Draw(t, "more"))
		}
		for _, strategy := range []Strategy{Sticky, External} {
			checkOwners(t, strategy(in), in.Partitions)
		}
		if len(in.Members) == 0 {
			return
		}
		target := Sticky(in)
		most, least := 0, in.Partitions
		for _, s := range target {
			most, least = max(most, s.Len()), min(least, s.Len())
		}
		if most-least > 1 {
			t.Fatalf("the target is %s", target)
		}
	})
}

func TestExternalDoesWhatTheKeySays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		target := External(in)
		members := Of(in.Members...)
		wanted, is, goal := listOf(in.Target, in.Partitions), listOf(in.Owners, in.Partitions+5), listOf(target, in.Partitions)
		for p, to := range goal {
			switch {
			case members.Contains(wanted[p]):
				if to != wanted[p] {
					t.Fatalf("the key gives %d to %d, and the target to %d", p, wanted[p], to)
				}
			case members.Contains(is[p]):
				if to != is[p] {
					t.Fatalf("%d has no target and goes from %d to %d", p, is[p], to)
				}
			}
		}
	})
}
