package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/idalloc/idalloc/test/envtest/process"
)

// The files that the broker writes in the directory that brokerEnv names.
const (
	brokerEnv   = "BROKER_DIR"
	addressFile = "address"
	commitsFile = "commits"
)

// playBroker runs franz-go's broker until SIGTERM. It writes down each offset that is committed.
func playBroker() (err error) {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2))
	if err != nil {
		return err
	}
	defer cluster.Close()
	dir := os.Getenv(brokerEnv)
	commits, err := os.Create(filepath.Join(dir, commitsFile)) //nolint:gosec // the test's directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, commits.Close()) }()
	cluster.ControlKey(int16(kmsg.OffsetCommit), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if commit, ok := request.(*kmsg.OffsetCommitRequest); ok {
			for _, topic := range commit.Topics {
				for _, p := range topic.Partitions {
					if _, err := fmt.Fprintf(commits, "%s-%x %d %d\n", topic.Topic, topic.TopicID, p.Partition, p.Offset); err != nil {
						return nil, err, true
					}
				}
			}
		}
		return nil, nil, false //nolint:nilnil // the broker answers as it would
	})
	address := filepath.Join(dir, addressFile)
	if err := os.WriteFile(address+".new", []byte(strings.Join(cluster.ListenAddrs(), ",")), 0o600); err != nil { //nolint:gosec // the test's directory
		return err
	}
	if err := os.Rename(address+".new", address); err != nil { //nolint:gosec // as above
		return err
	}
	<-end
	return nil
}

// startBroker runs a broker in a process of its own, and returns its addresses and the file of the commits.
func startBroker(t *testing.T) (brokers []string, commits string) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	must(t, err)
	group, err := process.NewGroup()
	must(t, err)
	t.Cleanup(group.Close)
	cmd := exec.Command(self) //nolint:gosec,noctx // this binary; the group ends it
	cmd.Env = append(os.Environ(), roleEnv+"="+roleBroker, brokerEnv+"="+dir)
	cmd.Stderr = os.Stderr
	running, err := group.Start(cmd)
	must(t, err)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(filepath.Join(dir, addressFile)) //nolint:gosec // as above
		if err == nil {
			return strings.Split(string(text), ","), filepath.Join(dir, commitsFile)
		}
		select {
		case <-tick.C:
		case <-running.Done():
			t.Fatalf("the broker ended with exit code %d", running.ExitCode())
		case <-t.Context().Done():
			t.Fatal("the broker does not start")
		}
	}
}

// backwards returns the commits that put an offset back, and how many there were in all.
func backwards(file string) (wrong []string, n int, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // the test's own file
	if err != nil {
		return nil, 0, err
	}
	last := map[place]int{}
	for line := range strings.Lines(string(text)) {
		var at place
		var offset int
		if _, err := fmt.Sscan(line, &at.topic, &at.partition, &offset); err != nil {
			return nil, n, fmt.Errorf("%q: %w", line, err)
		}
		n++
		if offset < last[at] {
			wrong = append(wrong, fmt.Sprintf("%v: offset %d was committed after %d", at, offset, last[at]))
		}
		last[at] = offset
	}
	return wrong, n, nil
}
