package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/idalloc/idalloc/pkg/placement"
)

// topic is the one topic whose partitions are divided.
const topic = "orders"

// kafka has a balancer of franz-go divide. The members tell it what they own, as they do when they join a group.
func kafka(b kgo.GroupBalancer) contender {
	return contender{"franz-go " + b.ProtocolName(), func(in placement.Input) (placement.Owners, time.Duration) {
		o, took := balance(b, in)
		if b.IsCooperative() {
			// The first division leaves out what must be revoked first. A second one gives it to its new owner.
			in.Owners = o
			o, _ = balance(b, in)
		}
		return o, took
	}}
}

func balance(b kgo.GroupBalancer, in placement.Input) (placement.Owners, time.Duration) {
	members := make([]kmsg.JoinGroupResponseMember, 0, len(in.Members))
	for _, id := range in.Members {
		owned := map[string][]int32{}
		if s := in.Owners[id]; !s.Empty() {
			for p := range s.All() {
				owned[topic] = append(owned[topic], int32(p)) //nolint:gosec // far below 2^31
			}
		}
		m := kmsg.NewJoinGroupResponseMember()
		m.MemberID = fmt.Sprintf("%08d", id) // members are sorted by name
		m.ProtocolMetadata = b.JoinGroupMetadata([]string{topic}, owned, 1)
		members = append(members, m)
	}
	balancer, _, err := b.MemberBalancer(members)
	if err != nil {
		panic(err) // it refuses what it wrote itself
	}
	balances, ok := balancer.(kgo.GroupMemberBalancerOrError)
	if !ok {
		panic("the balancer of franz-go is another one")
	}
	start := time.Now()
	into, err := balances.BalanceOrError(map[string]int32{topic: int32(in.Partitions)}) //nolint:gosec // far below 2^31
	took := time.Since(start)
	plan, ok := into.(*kgo.BalancePlan)
	if err != nil || !ok {
		panic(fmt.Sprintf("the balancer of franz-go returns %T, %v", into, err))
	}
	return ownersOfPlan(plan, in.Members), took
}

func ownersOfPlan(plan *kgo.BalancePlan, members []int) placement.Owners {
	o := make(placement.Owners, len(members))
	for _, id := range members {
		o[id] = placement.Set{}
	}
	for name, topics := range plan.AsMemberIDMap() {
		id, err := strconv.Atoi(name)
		if err != nil || !slices.Contains(members, id) {
			panic("the balancer of franz-go knows a member " + name)
		}
		list := make([]int, 0, len(topics[topic]))
		for _, p := range topics[topic] {
			list = append(list, int(p))
		}
		o[id] = placement.Of(list...)
	}
	return o
}
