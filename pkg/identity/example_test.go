package identity_test

import (
	"context"
	"fmt"
	"log"

	"github.com/idalloc/idalloc/pkg/identity"
)

// Every instance goes through all keys and handles its own.
func ExampleIdentity_Owns() {
	const count = 3
	for id := range count {
		me := identity.Identity{State: identity.StateAssigned, ID: id, Count: count}
		for _, tenant := range []string{"acme", "berta", "hooli", "initech"} {
			if me.Owns([]byte(tenant)) {
				fmt.Println(me, "handles", tenant)
			}
		}
	}
	// Output:
	// 0/3 handles initech
	// 1/3 handles berta
	// 2/3 handles acme
	// 2/3 handles hooli
}

func ExampleIdentity_SequenceStartIncrement() {
	me := identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5}
	if start, increment, ok := me.SequenceStartIncrement(); ok {
		fmt.Printf("CREATE SEQUENCE orders_3 START WITH %d INCREMENT BY %d\n", start, increment)
	}
	// Output: CREATE SEQUENCE orders_3 START WITH 4 INCREMENT BY 5
}

func ExampleIdentity_MachineID16() {
	me := identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5}
	fmt.Println(me.MachineID16())
	// Output: 3 <nil>
}

// A workload beside an idalloc container follows the files that it publishes.
func ExampleFollow() {
	err := identity.Follow(context.Background(), identity.DefaultDir, func(id identity.Identity) {
		if id.Assigned() {
			log.Printf("I am %d of %d", id.ID, id.Count)
		} else {
			log.Printf("no id now: %s", id.State)
		}
	})
	log.Print(err)
}

// After a scale two instances own one key until the slower one has heard of it. The later owner's epoch may be
// the lower one: it has held its id for longer.
func ExampleIdentity_Owns_afterAScale() {
	key := []byte("hooli")
	slow := identity.Identity{State: identity.StateAssigned, ID: 2, Count: 3, Epoch: 1795219200777} // has not heard of it yet
	for id, epoch := range []int64{1795219200123, 1795219200123, 1795219200777, 1795219200999, 1795219200999} {
		quick := identity.Identity{State: identity.StateAssigned, ID: id, Count: 5, Epoch: epoch}
		if quick.Owns(key) && slow.Owns(key) {
			fmt.Printf("%s: %v with epoch %d and %v with epoch %d\n", key, slow, slow.Epoch, quick, quick.Epoch)
		}
	}
	// Output: hooli: 2/3 with epoch 1795219200777 and 1/5 with epoch 1795219200123
}
