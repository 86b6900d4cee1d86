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
