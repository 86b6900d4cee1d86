package consumers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// stride is the example's default.
const stride = 1024

func testSequences(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	server, err := example.StartServer(ctx, "postgres")
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	db, err := pgxpool.New(ctx, server.URL)
	must(t, err)
	t.Cleanup(db.Close)
	w := deploy(ctx, t, env, "sequences", 3, program(build(ctx, t, "sequences"), map[string]string{"DATABASE_URL": server.URL}))
	s := shards{workload: w, db: db}
	s.write(ctx)
	w.scale(ctx, 5)
	s.write(ctx)
	w.scale(ctx, 2)
	w.restart(ctx, 2)
	s.write(ctx)
	w.scale(ctx, 4)
	s.write(ctx)
	w.scale(ctx, 0)

	rows := s.unique(ctx, 5)
	t.Logf("%d rows", rows)
	for shard := range 4 { // 0 and 1 were handed over in the rolling update, 2 and 3 were scaled away and have come back
		if pods := s.pods(ctx, shard); pods < 2 {
			t.Errorf("%d pods wrote to shard %d, so it changed hands not once", pods, shard)
		}
	}

	t.Log("a pod with another stride")
	w.patch(ctx, fmt.Sprintf(`{"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":%q,"env":[{"name":"STRIDE","value":"8"}]}]}}}}`, container))
	w.until(ctx, "the other stride is refused", func(ctx context.Context) (bool, error) {
		pods, err := w.namespace.Pods(ctx, w.name)
		if err != nil || len(pods) == 0 {
			return false, err
		}
		said, err := w.said(pods[0].Name)
		return err == nil && strings.Contains(said, "set STRIDE to what it was"), nil
	})
	if after := s.unique(ctx, 5); after != rows {
		t.Errorf("a pod with another stride wrote %d rows", after-rows)
	}
}

// shards is the workload with what it writes.
type shards struct {
	*workload

	db *pgxpool.Pool
}

// write waits until each pod has written a row.
func (s shards) write(ctx context.Context) {
	s.t.Helper()
	for id, pod := range s.workload.pods(ctx) {
		s.until(ctx, pod+" writes", func(ctx context.Context) (bool, error) {
			var rows int
			err := s.db.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM shard_%d.item WHERE pod = $1`, id), pod).Scan(&rows)
			return err == nil && rows > 0, nil
		})
	}
}

// unique returns how many rows the shards have together. It fails if two of them have one key, or if a key is not of its shard.
func (s shards) unique(ctx context.Context, shards int) (rows int) {
	s.t.Helper()
	union := make([]string, 0, shards)
	for id := range shards {
		union = append(union, fmt.Sprintf(`SELECT key, %d AS shard FROM shard_%d.item`, id, id))
	}
	var keys, strange int
	must(s.t, s.db.QueryRow(ctx, fmt.Sprintf(
		`SELECT count(*), count(DISTINCT key), count(*) FILTER (WHERE key %% %d <> shard) FROM (%s) AS r`, stride, strings.Join(union, " UNION ALL "),
	)).Scan(&rows, &keys, &strange))
	if rows != keys {
		s.t.Errorf("%d rows have %d keys", rows, keys)
	}
	if strange != 0 {
		s.t.Errorf("%d keys are not of their shard", strange)
	}
	return rows
}

// pods returns how many pods have written to a shard.
func (s shards) pods(ctx context.Context, shard int) (pods int) {
	s.t.Helper()
	must(s.t, s.db.QueryRow(ctx, fmt.Sprintf(`SELECT count(DISTINCT pod) FROM shard_%d.item`, shard)).Scan(&pods))
	return pods
}
