package identity_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Every instance goes through all keys and handles its own ones.
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

// A program that runs once, such as a script's helper, reads the identity that an idalloc container has published.
func ExampleRead() {
	dir := published(identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5, Token: 1753647547040015123})
	defer func() { _ = os.RemoveAll(dir) }()

	id, err := identity.Read(dir) // in a pod: identity.DefaultDir
	if err != nil {
		log.Print(err)
		return
	}
	if id.Assigned() {
		fmt.Printf("I am %d of %d, with token %d\n", id.ID, id.Count, id.Token)
	}
	// Output: I am 3 of 5, with token 1753647547040015123
}

// A program beside an idalloc container follows the identity. It stops the work under the old one before it starts the work
// under the new one.
func ExampleFollow() {
	assigned := identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5, Token: 1753647547040015123}
	dir := published(assigned)
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(context.Background())

	// start starts the work on a goroutine of its own. The function that it returns blocks until the work has stopped.
	start := func(id identity.Identity) (stop func()) {
		work, cancelWork := context.WithCancel(ctx)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			fmt.Println("working as", id)
			<-work.Done() // a real program works here until its context ends
			fmt.Println("stopped")
		}()
		return func() {
			cancelWork()
			<-stopped
		}
	}

	stopWork := func() {}
	err := identity.Follow(ctx, dir, func(id identity.Identity) { // in a pod: identity.DefaultDir
		stopWork()
		stopWork = func() {}
		if id.Assigned() {
			stopWork = start(id)
			replaceFiles(dir, assigned.Without(identity.StateDraining)) // the idalloc container does this at some time
			return
		}
		fmt.Println("no id now:", id.State)
		cancel()
	})
	fmt.Println("the end:", err)
	// Output:
	// working as 3/5
	// stopped
	// no id now: draining
	// the end: context canceled
}

// published returns a directory with the files of an idalloc container.
func published(id identity.Identity) (dir string) {
	dir, err := os.MkdirTemp("", "idalloc")
	if err != nil {
		log.Fatal(err)
	}
	replaceFiles(dir, id)
	return dir
}

// replaceFiles does what an idalloc container does when the identity changes.
func replaceFiles(dir string, id identity.Identity) {
	if err := publish.New(dir).Publish(id); err != nil {
		log.Fatal(err)
	}
}

// After a scale, two instances own one key until the slower one has heard of the new count. The token of the key's new owner may
// be lower than that of its old owner, because the new owner has held its id for longer.
func ExampleIdentity_Owns_afterAScale() {
	key := []byte("hooli")
	slow := identity.Identity{State: identity.StateAssigned, ID: 2, Count: 3, Token: 1753647547040015777} // has not heard of the new count yet
	for id, token := range []int64{1753647547040015123, 1753647547040015123, 1753647547040015777, 1753647547040015999, 1753647547040015999} {
		quick := identity.Identity{State: identity.StateAssigned, ID: id, Count: 5, Token: token}
		if quick.Owns(key) && slow.Owns(key) {
			fmt.Printf("%s: %v with token %d and %v with token %d\n", key, slow, slow.Token, quick, quick.Token)
		}
	}
	// Output: hooli: 2/3 with token 1753647547040015777 and 1/5 with token 1753647547040015123
}
