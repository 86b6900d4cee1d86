package consumers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	corev1 "k8s.io/api/core/v1"

	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	// shared is where the worker finds what the sidecar publishes.
	shared = "/ids"
	// queues is how many partitions the workers in other languages divide.
	queues = 6
)

// besideWatch returns a pod whose program runs beside idalloc watch, and says itself when its work has stopped.
func besideWatch(environment map[string]string, command ...string) *corev1.PodSpec {
	worker, sidecar := suite.Container(container, command...), suite.Sidecar("idalloc")
	for name, value := range environment {
		worker.Env = append(worker.Env, corev1.EnvVar{Name: name, Value: value})
	}
	// All pods share the machine's ports and its files.
	worker.Env = append(worker.Env, corev1.EnvVar{Name: "IDALLOC_DIR", Value: shared}, corev1.EnvVar{Name: "IDALLOC_URL", Value: "http://$(POD_IP):8089"})
	sidecar.Args = []string{"watch", "--dir=" + shared, "--partitions", "--drain=http", "--http-address=$(POD_IP):8089"}
	spec := suite.PodSpec(worker)
	spec.InitContainers = []corev1.Container{sidecar}
	suite.Share(spec, shared)
	return spec
}

// goThroughADay has the workers be scaled, replaced and killed, and waits each time until every partition makes progress.
func goThroughADay(ctx context.Context, w *workload, progress func()) {
	w.t.Helper()
	progress()
	w.scale(ctx, 3)
	progress()
	w.restart(ctx, 3)
	progress()
	must(w.t, w.kill(ctx, 0))
	progress()
	w.scale(ctx, 1)
	progress()
}

// The worker in Python publishes a result for each message. No later result of a queue may have a lower token, and none may be missing. The worker
// finds an empty broker.
func testPython(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	broker, err := example.StartServer(ctx, "rabbitmq")
	must(t, err)
	t.Cleanup(func() { must(t, broker.Stop()) })
	connection, err := amqp.Dial(broker.URL)
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() }) // the broker ends with the test
	// Debian's interpreter has Debian's modules.
	w := deployShared(ctx, t, env, "python", besideWatch(map[string]string{"RABBITMQ_URL": broker.URL}, "/usr/bin/python3", filepath.Join(folder(t, "examples", "python"), "worker.py")))
	channel := declared(ctx, w, connection, "orders-P0", "orders-P1", "orders-P2", "orders-P3", "orders-P4", "orders-P5", "results", "orders-dead")
	send := func(queue, body string) {
		t.Helper()
		must(t, channel.PublishWithContext(ctx, "", queue, true, false, amqp.Publishing{Body: []byte(body)}))
	}
	receive := func(queue string) func() amqp.Delivery {
		deliveries, err := channel.Consume(queue, "", true, true, false, false, nil)
		must(t, err)
		return func() (d amqp.Delivery) {
			select {
			case d = <-deliveries:
			case <-ctx.Done():
				t.Fatalf("%s has no more messages", queue)
			}
			return d
		}
	}
	result, dead := receive("results"), receive("orders-dead")

	last := map[string]int64{}
	// all sends a message to each queue and waits for their results. An earlier one comes again if its worker was killed before it acknowledged.
	all := func(body string) {
		t.Helper()
		for p := range queues {
			send("orders-P"+strconv.Itoa(p), body)
		}
		for done := map[string]bool{}; len(done) < queues; {
			r := result()
			queue, _ := r.Headers["queue"].(string)
			token, err := strconv.ParseInt(fmt.Sprint(r.Headers["token"]), 10, 64) // the client chooses its size
			must(t, err)
			if token == 0 || token < last[queue] {
				t.Errorf("%s: token %d after %d", queue, token, last[queue])
			}
			last[queue] = max(token, last[queue])
			done[queue] = done[queue] || string(r.Body) == body
		}
	}
	for n := range 100 {
		all(strconv.Itoa(n))
	}
	send("orders-P0", "no order")
	if d := dead(); string(d.Body) != "no order" || d.DeliveryMode != amqp.Persistent || d.Headers["queue"] != "orders-P0" || d.Headers["error"] == nil {
		t.Errorf("the dead letter is %q with %v", d.Body, d.Headers)
	}
	sent := 100
	goThroughADay(ctx, w, func() {
		t.Helper()
		sent++
		all(strconv.Itoa(sent))
	})
}

// declared waits until a program has declared these queues, and returns a channel.
func declared(ctx context.Context, w *workload, connection *amqp.Connection, queues ...string) (channel *amqp.Channel) {
	w.t.Helper()
	for _, queue := range queues {
		w.until(ctx, "the worker declares "+queue, func(context.Context) (bool, error) {
			var err error
			if channel == nil || channel.IsClosed() {
				channel, err = connection.Channel()
				must(w.t, err)
			}
			_, err = channel.QueueDeclarePassive(queue, true, false, false, false, nil) // closes the channel if there is none
			return err == nil, nil
		})
	}
	return channel
}

// The worker in Node.js finds an empty database. The tokens of a partition's writes must not fall.
func testNode(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	server, err := example.StartServer(ctx, "postgres")
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	db, err := pgxpool.New(ctx, server.URL)
	must(t, err)
	t.Cleanup(db.Close)
	node, err := exec.LookPath("node")
	must(t, err)

	w := deployShared(ctx, t, env, "node", besideWatch(map[string]string{"DATABASE_URL": server.URL}, node, filepath.Join(modules(ctx, t, "node"), "worker.js")))
	w.until(ctx, "the worker makes its tables", func(ctx context.Context) (made bool, err error) {
		err = db.QueryRow(ctx, `SELECT to_regclass('run') IS NOT NULL`).Scan(&made)
		return made, err
	})
	progress := func() {
		t.Helper()
		var before int64
		must(t, db.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM run`).Scan(&before))
		w.until(ctx, "every partition is worked on", func(ctx context.Context) (bool, error) {
			var partitions int
			err := db.QueryRow(ctx, `SELECT count(DISTINCT partition) FROM run WHERE id > $1`, before).Scan(&partitions)
			return partitions == queues, err
		})
	}
	goThroughADay(ctx, w, progress)
	var fell, workers int
	must(t, db.QueryRow(ctx, `SELECT count(*) FROM (
		SELECT token < lag(token) OVER (PARTITION BY partition ORDER BY id) AS fell FROM run) AS r WHERE fell`).Scan(&fell))
	must(t, db.QueryRow(ctx, `SELECT count(DISTINCT worker) FROM run`).Scan(&workers))
	if fell > 0 || workers < 4 {
		t.Errorf("%d writes have a lower token than one before, and %d workers have written", fell, workers)
	}
}

// deployShared deploys one pod, and has the workload be divided.
func deployShared(ctx context.Context, t *testing.T, env *suite.Suite, name string, spec *corev1.PodSpec) *workload {
	t.Helper()
	w := deploy(ctx, t, env, name, 1, spec)
	w.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, example.KeyCount, queues))
	return w
}

// modules copies an example and fetches the modules of its lock file, as a person does.
func modules(ctx context.Context, t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(folder(t, "examples", name))))
	cmd := exec.CommandContext(ctx, "npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return dir
}
