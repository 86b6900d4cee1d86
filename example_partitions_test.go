package idalloc_test

import (
	"context"
	"log"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/idalloc/idalloc"
)

// consume works on one partition until ctx ends.
func consume(ctx context.Context, p idalloc.Partition) error {
	log.Printf("working on partition %d of %d with token %d", p.Number, p.Count, p.Token)
	<-ctx.Done()
	return ctx.Err()
}

// This is the whole main of a program that works on partitions. The function is called for each partition that this pod owns.
// RunPartitions releases the slot after all calls have returned.
func ExampleRunPartitions() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := idalloc.RunPartitions(ctx, idalloc.Options{}, consume); err != nil {
		log.Print(err)
	}
}

// A program with a loop of its own asks before each step what it owns. Stop waits for the step that is under way, and the next step
// does not see the partitions that are to move.
func ExampleStart_partitions() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var step sync.Mutex
	options := idalloc.Options{Partitions: true, Stop: func(context.Context, idalloc.Stopping) error {
		step.Lock()
		defer step.Unlock()
		return nil
	}}
	instance, err := idalloc.Start(ctx, options)
	if err != nil {
		log.Print(err)
		return
	}
	for ctx.Err() == nil {
		step.Lock()
		for _, p := range instance.Owned() {
			log.Printf("one step on partition %d", p.Number)
		}
		step.Unlock()
		select {
		case <-instance.Changes():
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := instance.Close(release); err != nil {
		log.Print(err)
	}
}
