package main

import (
	"context"
	"errors"
	"os"
	"strconv"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/overlap"
)

// firstPartition is what a log has in the place of an id for partition 0. The other partitions follow it.
const firstPartition = 1_000_000

// workByEnvironment works under the id of the environment and on the partitions that it names. It knows nothing of Kubernetes.
func workByEnvironment(ctx context.Context, dir, pod string) error {
	id, idErr := strconv.Atoi(os.Getenv("IDALLOC_ID"))
	count, countErr := strconv.Atoi(os.Getenv("IDALLOC_COUNT"))
	token, tokenErr := strconv.ParseInt(os.Getenv("IDALLOC_TOKEN"), 10, 64)
	partitions, err := placement.Parse(os.Getenv("IDALLOC_PARTITIONS"), placement.MaxCount)
	if err := errors.Join(idErr, countErr, tokenErr, err); err != nil {
		return err
	}
	ended := make(chan error)
	work := func(log string, id, count int, token int64) {
		w, err := overlap.NewWriter(dir, log, os.Getenv("POD_UID"))
		if err == nil {
			err = errors.Join(act(ctx, w, id, count, token), w.Close())
		}
		ended <- err
	}
	go work(pod, id, count, token)
	begun := overlap.Now() // stands for the tokens of partitions, which the environment does not have
	for k := range partitions.All() {
		go work(pod+"#"+strconv.Itoa(k), firstPartition+k, firstPartition+placement.MaxCount, begun)
	}
	for range partitions.Len() {
		err = errors.Join(err, <-ended)
	}
	return errors.Join(err, <-ended)
}
