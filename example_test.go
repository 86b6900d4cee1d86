package idalloc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/numbers"
)

// process does a part of the work that belongs to id out of count, and returns when ctx ends.
func process(ctx context.Context, id idalloc.Identity) error {
	log.Printf("working on part %d of %d with token %d", id.ID, id.Count, id.Token)
	<-ctx.Done()
	return ctx.Err()
}

// This is the whole main of a program. The function runs while this pod holds an id, and is called again when the id or the
// count changes. Run releases the slot after the function has returned.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := idalloc.Run(ctx, idalloc.Options{}, process); err != nil {
		log.Print(err)
	}
}

// Run releases the slot and returns when the function returns by itself, for example because the work is done.
func ExampleRun() {
	cluster := newCluster() // a test server; in a pod, pass idalloc.Options{} below
	defer cluster.close()

	err := idalloc.Run(context.Background(), cluster.options(), func(_ context.Context, id idalloc.Identity) error {
		fmt.Printf("I am %d of %d\n", id.ID, id.Count)
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// I am 0 of 3
	// error: <nil>
}

// When you scale the workload, Run ends the function's context and calls the function again with the new count.
func ExampleRun_scale() {
	cluster := newCluster() // a test server; in a pod, pass idalloc.Options{} below
	defer cluster.close()
	ctx, stop := context.WithCancel(context.Background())

	err := idalloc.Run(ctx, cluster.options(), func(work context.Context, id idalloc.Identity) error {
		fmt.Printf("I am %d of %d\n", id.ID, id.Count)
		if id.Count == 3 {
			cluster.scale(5)
		} else {
			stop()
		}
		<-work.Done()
		fmt.Println("the count changed:", errors.Is(context.Cause(work), idalloc.ErrCountChanged))
		return work.Err()
	})
	fmt.Println("error:", err)
	// Output:
	// I am 0 of 3
	// the count changed: true
	// I am 0 of 5
	// the count changed: false
	// error: <nil>
}

// Work that needs only the id, for example a generator of unique ids, keeps running when the count changes.
func ExampleRun_keepOnCountChange() {
	cluster := newCluster() // a test server; in a pod, begin with idalloc.Options{}
	defer cluster.close()
	options := cluster.options()
	options.KeepOnCountChange = true

	err := idalloc.Run(context.Background(), options, func(_ context.Context, id idalloc.Identity) error {
		machine, err := numbers.MachineID16(id)
		if err != nil {
			return err
		}
		fmt.Println("machine", machine)
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// machine 0
	// error: <nil>
}

// A program with a loop of its own checks Current before every step. It calls Close after its work has stopped.
func ExampleStart() {
	cluster := newCluster() // a test server; in a pod, pass idalloc.Options{} below
	defer cluster.close()
	ctx := context.Background()

	instance, err := idalloc.Start(ctx, cluster.options())
	if err != nil {
		log.Print(err)
		return
	}
	if _, err := instance.Wait(ctx); err != nil {
		log.Print(err)
	}
	for _, key := range []string{"acme", "berta", "initech"} {
		if instance.Current().Owns([]byte(key)) {
			fmt.Println(key, "is mine")
		}
	}

	release, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	fmt.Println("closed:", instance.Close(release))
	fmt.Println("assigned:", instance.Current().Assigned())
	// Output:
	// initech is mine
	// closed: <nil>
	// assigned: false
}

// A program that only wants to hear of changes receives identities from a channel.
func ExampleInstance_Changes() {
	cluster := newCluster() // a test server; in a pod, pass idalloc.Options{} below
	defer cluster.close()
	instance, err := idalloc.Start(context.Background(), cluster.options())
	if err != nil {
		log.Print(err)
		return
	}
	for id := range instance.Changes() {
		if id.Assigned() { // the first identity may be a pending one
			fmt.Println("now", id)
			break
		}
	}
	fmt.Println("closed:", instance.Close(context.Background()))
	// Output:
	// now 0/3
	// closed: <nil>
}

// discard keeps the log out of the examples' output.
var discard = logr.FromSlogHandler(slog.DiscardHandler) //nolint:gochecknoglobals // a constant that Go cannot express
