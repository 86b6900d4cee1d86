//go:build e2e

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/example"
)

// What is broken while the load is high.
const (
	leaderKilled   = "leader killed in a move"
	statisticsGone = "management API restarted"
)

// killTheLeader kills the autoscaler that leads as soon as it has written a target. Its container starts again, as another candidate. When the lease
// is over, one of the two gets it.
func killTheLeader(ctx context.Context, t *testing.T, c *cluster, r *rival) {
	t.Helper()
	lease := func() (leader string, renewed time.Time) {
		l, err := c.CoordinationV1().Leases(r.namespace).Get(ctx, "idalloc-autoscaler-deployment."+example.Scaled, metav1.GetOptions{})
		must(t, err)
		return *l.Spec.HolderIdentity, l.Spec.RenewTime.Time
	}
	first, _ := lease()
	pid := autoscalerOf(t, first)
	before, _ := r.history.last()
	s, err := r.history.await(ctx, "waiting for a target", func(s state) bool { return s.target != before.target })
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	killed := time.Now()
	t.Logf("killed the autoscaler %s when the target became %s; %d ids own %d partitions", first, s.target, s.owners, s.owned)
	until(ctx, t, "an autoscaler leads", func() (bool, error) {
		_, renewed := lease()
		return renewed.After(killed), nil
	})
	leader, _ := lease()
	t.Logf("%s leads after %s", leader, time.Since(killed).Round(time.Second))
}

// autoscalerOf finds the process of a candidate, whose identity begins with its pod's name: the node is this machine.
func autoscalerOf(t *testing.T, identity string) int {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	must(t, err)
	for _, path := range environments {
		env, err := os.ReadFile(path) //nolint:gosec // of /proc
		if err != nil {
			continue // it has ended
		}
		for variable := range strings.SplitSeq(string(env), "\x00") {
			if pod, found := strings.CutPrefix(variable, "POD_NAME="); found && strings.HasPrefix(identity, pod) {
				pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				must(t, err)
				return pid
			}
		}
	}
	t.Fatalf("no process on this machine is the autoscaler %s", identity)
	return 0
}

// restartTheStatistics stops and starts RabbitMQ's management, which forgets how much was published then. Queues and messages are not touched.
func restartTheStatistics(ctx context.Context, t *testing.T, broker *example.Server) {
	t.Helper()
	said := func(file string) string {
		text, err := broker.Said(file)
		must(t, err)
		return text
	}
	const restart = "application:stop(rabbitmq_management), application:stop(rabbitmq_management_agent), timer:sleep(15000), application:start(rabbitmq_management_agent), application:start(rabbitmq_management)."
	cmd := exec.CommandContext(ctx, "/usr/lib/rabbitmq/bin/rabbitmqctl", "--node", "idalloc"+said("port.amqp")+"@localhost", "--erlang-cookie", said(".erlang.cookie"), "eval", restart) //nolint:gosec // what the test itself has started
	cmd.Env = append(os.Environ(), "ERL_EPMD_PORT="+said("port.epmd"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("restarted the management: %s", out)
}
