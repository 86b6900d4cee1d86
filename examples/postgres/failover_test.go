package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	partitions, replicas = 6, 3
	// victim is the id whose worker is suspended. Until it is back, the next id has its partitions.
	victim, next = 1, 2
	// patience is many times what the test needs.
	patience = 10 * time.Minute
)

// roleEnv makes this test binary play the example. suspendEnv names a file: a worker of the pod whose name is in it renames the file to held,
// and stays in the midst of its item as long as that is there.
const (
	roleEnv    = "RANGES_ROLE"
	suspendEnv = "RANGES_SUSPEND"
	held       = ".held"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "" {
		os.Exit(m.Run())
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(log, []string{"work"}, compute); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

func compute(ctx context.Context, _ int) {
	pause(ctx, stepTime)
	file := os.Getenv(suspendEnv)
	name, err := os.ReadFile(file) //nolint:gosec // the test's own file
	if err != nil || string(name) != os.Getenv("POD_NAME") {
		return
	}
	// Two partitions may see the file at once. One of them renames it.
	if os.Rename(file, file+held) != nil { //nolint:gosec // the test's own file
		return
	}
	_ = wait.PollUntilContextCancel(context.WithoutCancel(ctx), 10*time.Millisecond, true, func(context.Context) (bool, error) {
		_, err := os.Stat(file + held) //nolint:gosec // the test's own file
		return os.IsNotExist(err), nil
	})
}

// One database serves all tests.
func TestWithADatabase(t *testing.T) {
	server, err := example.StartServer(t.Context(), "postgres")
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	db, err := pgxpool.New(t.Context(), server.URL)
	must(t, err)
	t.Cleanup(db.Close)
	t.Run("a later owner shuts the earlier one out", func(t *testing.T) { testALaterOwnerShutsTheEarlierOneOut(t, db) })
	t.Run("fail-over", func(t *testing.T) { testFailover(t, server.URL, db) })
}

// The three conditions of fail-over: in a healthy workload only primaries work; when a worker is dead, another one works on its
// partitions; when it is back, it works on them again, and the other one does not. In strict mode the Lease of a dead worker expires first.
func testFailover(t *testing.T, url string, db *pgxpool.Pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := newWorkers(ctx, t, url, db)

	t.Log("healthy: each id works on its range of the partitions")
	owners, err := w.Settled(ctx, replicas, partitions)
	must(t, err)
	for id, s := range owners {
		if primary := (placement.Range{ID: id, Count: replicas, Partitions: partitions}.Set()); !s.Equal(primary) {
			t.Errorf("id %d has %v, want %v", id, s, primary)
		}
	}
	healthy := w.pods(ctx, t)
	w.works(ctx, t, owners, healthy)

	t.Log("suspending a worker in the midst of an item, and deleting its pod by force. There is no room for another pod")
	must(t, w.Room(ctx, replicas-1))
	stale := w.suspend(ctx, t, healthy[victim])
	must(t, w.Delete(ctx, healthy[victim]))
	failedOver, err := w.Until(ctx, func(o placement.Owners) bool {
		_, there := o[victim]
		return !there && o[next].Equal(owners[next].Union(owners[victim]))
	})
	must(t, err)
	w.works(ctx, t, failedOver, healthy)

	t.Log("waking the worker up, which writes what it had in hand")
	before := w.written(ctx, t, healthy[victim].Name)
	must(t, os.Remove(w.file+held))
	must(t, syscall.Kill(stale, syscall.SIGCONT))
	w.until(ctx, t, "a write of the stale worker is refused", func() (bool, error) {
		return w.Said(healthy[victim].Name, `"msg":"refused"`), nil
	})
	if after := w.written(ctx, t, healthy[victim].Name); after != before {
		t.Errorf("the stale worker has written %d rows, and had written %d before it was suspended", after, before)
	}

	t.Log("making room for the pod that was missing")
	w.suite.Node.Resume()
	must(t, w.Room(ctx, replicas))
	owners, err = w.Settled(ctx, replicas, partitions)
	must(t, err)
	w.works(ctx, t, owners, w.pods(ctx, t))
	w.ordered(ctx, t)
}

// workers is the workload with what it writes.
type workers struct {
	*example.Workload

	suite *suite.Suite
	db    *pgxpool.Pool
	file  string // of suspendEnv
}

func newWorkers(ctx context.Context, t *testing.T, url string, db *pgxpool.Pool) *workers {
	t.Helper()
	s, err := suite.Start(ctx, suite.Options{SkipBinary: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	namespace, err := s.NewNamespace(ctx, suite.StrictRules()...)
	must(t, err)
	w := &workers{suite: s, db: db, file: filepath.Join(t.TempDir(), "suspend")}
	self, err := os.Executable()
	must(t, err)
	w.Workload, err = example.NewWorkload(ctx, s, namespace, example.Spec{
		Name:     "ranges",
		Replicas: replicas,
		Annotations: map[string]string{
			example.KeyCount:    strconv.Itoa(partitions),
			example.KeyStrategy: placement.NamePrimary,
		},
		Command: []string{self},
		Env:     map[string]string{roleEnv: "work", suspendEnv: w.file, "DATABASE_URL": url, "FENCE_AFTER": "6s"},
	})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.Logs(context.WithoutCancel(ctx)))
		}
	})
	return w
}

// pods waits until each id is held, and returns the pods by id.
func (w *workers) pods(ctx context.Context, t *testing.T) map[int]corev1.Pod {
	t.Helper()
	held := map[int]corev1.Pod{}
	w.until(ctx, t, "each id is held", func() (bool, error) {
		pods, err := w.Pods(ctx)
		for id, pod := range pods {
			n, err := strconv.Atoi(id)
			must(t, err)
			held[n] = pod
		}
		return len(pods) == replicas, err
	})
	return held
}

// works waits until each partition was worked on by the pod of its owner, and by no other since.
func (w *workers) works(ctx context.Context, t *testing.T, owners placement.Owners, pods map[int]corev1.Pod) {
	t.Helper()
	want := map[int]string{}
	for id, s := range owners {
		for partition := range s.All() {
			want[partition] = pods[id].Name
		}
	}
	w.until(ctx, t, fmt.Sprintf("the owners %v work on their partitions", owners), func() (bool, error) {
		latest, err := w.byPartition(ctx, `SELECT DISTINCT ON (partition) partition, worker FROM run ORDER BY partition, id DESC`)
		return maps.EqualFunc(latest, want, func(workers []string, worker string) bool { return workers[0] == worker }), err
	})
	var last int64
	must(t, w.db.QueryRow(ctx, `SELECT max(id) FROM run`).Scan(&last))
	w.until(ctx, t, "all items were worked on once more", func() (done bool, err error) {
		err = w.db.QueryRow(ctx, `SELECT count(DISTINCT key) = $1 FROM run WHERE id > $2`, keys, last).Scan(&done)
		return done, err
	})
	after, err := w.byPartition(ctx, `SELECT DISTINCT partition, worker FROM run WHERE id > $1`, last)
	must(t, err)
	for partition, workers := range after {
		if !slices.Equal(workers, []string{want[partition]}) {
			t.Errorf("%v worked on partition %d, want %s", workers, partition, want[partition])
		}
	}
}

// byPartition returns the workers that a query for partitions and workers returns.
func (w *workers) byPartition(ctx context.Context, query string, arguments ...any) (map[int][]string, error) {
	rows, err := w.db.Query(ctx, query, arguments...)
	if err != nil {
		return nil, err
	}
	by := map[int][]string{}
	var partition int
	var worker string
	_, err = pgx.ForEachRow(rows, []any{&partition, &worker}, func() error {
		by[partition] = append(by[partition], worker)
		return nil
	})
	return by, err
}

// suspend suspends the process of a pod while one of its workers is between computing a result and writing it.
func (w *workers) suspend(ctx context.Context, t *testing.T, pod corev1.Pod) int {
	t.Helper()
	process := w.Pid(pod.Name)
	w.suite.Node.Pause() // the node does not hear that the pod is deleted
	t.Cleanup(w.suite.Node.Resume)
	must(t, os.WriteFile(w.file+".new", []byte(pod.Name), 0o600))
	must(t, os.Rename(w.file+".new", w.file))
	w.until(ctx, t, "a worker is in the midst of an item", func() (bool, error) {
		_, err := os.Stat(w.file + held)
		return err == nil, nil
	})
	must(t, syscall.Kill(process, syscall.SIGSTOP))
	w.until(ctx, t, "the worker is suspended", func() (bool, error) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
		return strings.Contains(string(stat), ") T "), err
	})
	return process
}

// written returns how many rows a worker has written.
func (w *workers) written(ctx context.Context, t *testing.T, worker string) (rows int) {
	t.Helper()
	must(t, w.db.QueryRow(ctx, `SELECT count(*) FROM run WHERE worker = $1`, worker).Scan(&rows))
	return rows
}

// ordered checks that on no partition an earlier owner wrote after a later one.
func (w *workers) ordered(ctx context.Context, t *testing.T) {
	t.Helper()
	const fallen = `SELECT count(*) FROM (
	  SELECT token, lag(token) OVER (PARTITION BY partition ORDER BY id) AS before FROM run
	) AS r WHERE token < before`
	var n, all, workers int
	must(t, w.db.QueryRow(ctx, fallen).Scan(&n))
	must(t, w.db.QueryRow(ctx, `SELECT count(*), count(DISTINCT worker) FROM run`).Scan(&all, &workers))
	t.Logf("%d rows by %d workers", all, workers)
	if n != 0 {
		t.Errorf("%d rows have a lower token than the row before them on their partition", n)
	}
}

func (w *workers) until(ctx context.Context, t *testing.T, what string, fits func() (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) { return fits() })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
