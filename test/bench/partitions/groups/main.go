// Groups has consumers of partitions come and go in four ways, and measures for how long no consumer works on each partition: pods of
// idalloc whose partitions are queues of a RabbitMQ, the consumer group of Kafka, and RabbitMQ's single active consumer:
//
//	go -C test/bench/partitions run ./groups -out DIRECTORY
//
// It needs RabbitMQ and the programs of the local control plane. Kafka's broker is kfake, which is a part of franz-go and has the
// group's protocols, in this process. All else is as each has it by default. The directory gets groups.csv, groups.md and groups.svg.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/test/bench/table"
)

// options are what all contenders share.
type options struct {
	partitions, members, rounds int
	// start is how long a member takes to start, as a container does. pace is how often there is something to do for each partition.
	start, pace time.Duration
	// apart is how long it is quiet between two changes at most, which is at random: some wait for the next heartbeat.
	apart time.Duration
}

func main() {
	o := options{pace: 20 * time.Millisecond, apart: 5 * time.Second}
	out := flag.String("out", "bin/bench", "the directory that gets tables and picture")
	flag.IntVar(&o.partitions, "partitions", 24, "how many partitions")
	flag.IntVar(&o.members, "members", 3, "how many members")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each plays all scenes")
	flag.DurationVar(&o.start, "start", time.Second, "how long a member takes to start")
	only := flag.String("only", "", "which contenders: a part of their names")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, *only, *out); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "groups:", err)
		os.Exit(1) //nolint:gocritic // stop only stops listening for signals
	}
}

func run(ctx context.Context, o options, only, dir string) (err error) {
	playing := slices.DeleteFunc(contenders(), func(c contender) bool { return !strings.Contains(c.name, only) })
	var results []result
	for _, c := range playing {
		more, err := play(ctx, c, o, os.Stderr)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		results = append(results, more...)
	}
	return write(dir, results, os.Stdout)
}

func contenders() []contender {
	return slices.Concat(pods(), kafka(), []contender{
		{name: "RabbitMQ, single active consumer", limits: "heartbeat 10 s", open: openSingleActive},
	})
}

func write(dir string, results []result, stdout io.Writer) error {
	lines := rows(results)
	return errors.Join(
		table.Write(stdout, filepath.Join(dir, "groups.md"), table.Markdown(lines)),
		table.CSV(filepath.Join(dir, "groups.csv"), lines),
		draw(results, filepath.Join(dir, "groups.svg")),
	)
}
