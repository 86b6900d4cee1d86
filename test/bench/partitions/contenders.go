package main

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/dgryski/go-jump"
	"github.com/dgryski/go-rendezvous"
	"github.com/serialx/hashring"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/idalloc/idalloc/pkg/placement"
)

// contender is one way to divide partitions.
type contender struct {
	name string
	// divide returns who owns what when the members have changed, and how long it took to find out. The time has no conversion
	// from and to the types of this program in it.
	divide func(in placement.Input) (placement.Owners, time.Duration)
}

// points is how many virtual nodes each member has on the ring. libketama's number is the usual one.
const points = 160

func contenders() []contender {
	return []contender{
		sticky(),
		{"range", ours(placement.ByRange)},
		{"even (averagely)", ours(placement.Even)},
		{"modulo", byKey(func(members []int) func(int) int {
			return func(p int) int { return members[p%len(members)] }
		})},
		{"jump hash", byKey(func(members []int) func(int) int {
			return func(p int) int { return members[jump.Hash(hashOf(strconv.Itoa(p)), len(members))] }
		})},
		{"rendezvous hash", byName(func(names []string) func(string) string {
			return rendezvous.New(names, hashOf).Lookup
		})},
		{"hash ring", byName(func(names []string) func(string) string {
			weights := make(map[string]int, len(names))
			for _, name := range names {
				weights[name] = points
			}
			ring := hashring.NewWithWeights(weights)
			return func(key string) string {
				name, _ := ring.GetNode(key)
				return name
			}
		})},
		kafka(kgo.StickyBalancer()),
		kafka(kgo.CooperativeStickyBalancer()),
	}
}

func sticky() contender { return contender{"sticky", ours(placement.Sticky)} }

func ours(s placement.Strategy) func(placement.Input) (placement.Owners, time.Duration) {
	return func(in placement.Input) (placement.Owners, time.Duration) {
		start := time.Now()
		o := s(in)
		return o, time.Since(start)
	}
}

// byKey divides by a function from a partition to a member. owner makes it for some members.
func byKey(owner func(members []int) func(partition int) int) func(placement.Input) (placement.Owners, time.Duration) {
	return func(in placement.Input) (placement.Owners, time.Duration) {
		list := make([]int, in.Partitions)
		start := time.Now()
		of := owner(in.Members)
		for p := range list {
			list[p] = of(p)
		}
		took := time.Since(start)
		return ownersOf(in.Members, list), took
	}
}

// byName does the same for libraries that know keys and members by name.
func byName(owner func(names []string) func(key string) string) func(placement.Input) (placement.Owners, time.Duration) {
	return func(in placement.Input) (placement.Owners, time.Duration) {
		names, ids := make([]string, len(in.Members)), make(map[string]int, len(in.Members))
		for i, id := range in.Members {
			names[i] = nameOf(id)
			ids[names[i]] = id
		}
		keys, found := make([]string, in.Partitions), make([]string, in.Partitions)
		for p := range keys {
			keys[p] = "partition-" + strconv.Itoa(p)
		}
		start := time.Now()
		of := owner(names)
		for p, key := range keys {
			found[p] = of(key)
		}
		took := time.Since(start)
		list := make([]int, in.Partitions)
		for p, name := range found {
			list[p] = ids[name]
		}
		return ownersOf(in.Members, list), took
	}
}

func nameOf(id int) string { return "worker-" + strconv.Itoa(id) }

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// ownersOf returns the owners of which list has one for each partition.
func ownersOf(members, list []int) placement.Owners {
	of := make(map[int][]int, len(members))
	for p, id := range list {
		of[id] = append(of[id], p)
	}
	o := make(placement.Owners, len(members))
	for _, id := range members {
		o[id] = placement.Of(of[id]...)
	}
	return o
}
