package context_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"
	"time"

	idcontext "github.com/idalloc/idalloc/pkg/context"
)

// process does a part of the work that belongs to id out of count, and returns when ctx ends.
func process(ctx context.Context, id idcontext.Identity) error {
	log.Printf("working on part %d of %d with token %d", id.ID, id.Count, id.Epoch)
	<-ctx.Done()
	return ctx.Err()
}

// The whole of a workload's main: the function runs while this pod holds an id, and is called again
// when the id or the count changes. The slot is given back after it has returned.
func ExampleRun() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := idcontext.Run(ctx, idcontext.Options{}, process); err != nil {
		log.Print(err)
	}
}

// A worker that needs an id but not the count, for Snowflake ids say, keeps running over a scale.
func ExampleRun_keepOnCountChange() {
	options := idcontext.Options{KeepOnCountChange: true}
	err := idcontext.Run(context.Background(), options, func(ctx context.Context, id idcontext.Identity) error {
		machine, err := id.MachineID16()
		if err != nil {
			return err
		}
		log.Printf("machine %d", machine)
		<-ctx.Done()
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

// A program with a loop of its own looks at Current before every step, and closes when it is done.
func ExampleStart() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	instance, err := idcontext.Start(ctx, idcontext.Options{})
	if err != nil {
		log.Print(err)
		return
	}
	if _, err := instance.Wait(ctx); err != nil {
		log.Print(err)
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case id := <-instance.Changes():
			log.Printf("now %s", id)
		case <-time.After(time.Second):
			if id := instance.Current(); id.Owns([]byte("some-key")) {
				log.Print("some-key is mine")
			}
		}
	}
	release, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := instance.Close(release); err != nil {
		log.Print(err)
	}
}
