package idalloc_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
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

// named has work called with the name of a partition: its line in a file, such as that of a mounted ConfigMap. An empty line is a name that has ended. The
// kubelet may bring a longer list after the number of partitions was raised.
func named(file string, work func(ctx context.Context, name string, p idalloc.Partition) error) func(context.Context, idalloc.Partition) error {
	return func(ctx context.Context, p idalloc.Partition) error {
		for {
			text, err := os.ReadFile(file) //nolint:gosec // a file of the pod
			if err != nil {
				return fmt.Errorf("read the names of the partitions: %w", err)
			}
			names := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			if p.Number < len(names) && names[p.Number] != "" {
				return work(ctx, names[p.Number], p)
			}
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// Partitions with names: RunPartitions gets named(file, work) in place of work.
func ExamplePartition() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "names")
	if err := os.WriteFile(file, []byte("CA\nUS\n"), 0o600); err != nil {
		log.Print(err)
		return
	}
	work := named(file, func(_ context.Context, name string, p idalloc.Partition) error {
		fmt.Printf("working on %s, partition %d of %d\n", name, p.Number, p.Count)
		return nil
	})
	if err := work(context.Background(), idalloc.Partition{Number: 1, Count: 2, Token: 7}); err != nil {
		log.Print(err)
	}
	// Output: working on US, partition 1 of 2
}
