package consumers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// testCopied does what the READMEs of two examples say, in one namespace, with an empty broker and an empty database. It makes a Secret for each,
// and nothing else.
func testCopied(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	namespace, err := env.NewNamespace(ctx)
	must(t, err)
	broker, err := example.StartServer(ctx, "rabbitmq")
	must(t, err)
	t.Cleanup(func() { must(t, broker.Stop()) })
	server, err := example.StartServer(ctx, "postgres")
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	for name, url := range map[string]string{"orders": broker.URL, "ranges": server.URL} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"url": url}}
		_, err := env.Client.CoreV1().Secrets(namespace.Name).Create(ctx, secret, metav1.CreateOptions{})
		must(t, err)
	}
	orders, ranges := copied(ctx, t, env, namespace, "rabbitmq", "worker-orders"), copied(ctx, t, env, namespace, "postgres", "worker-ranges")
	connection, err := amqp.Dial(broker.URL)
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() }) // the broker ends with the test
	channel := declared(ctx, orders, connection, "OrderEvents-P0", "OrderEvents-dead")
	produce := exec.CommandContext(ctx, build(ctx, t, "examples/rabbitmq"), "produce", "100") //nolint:gosec // the project's own example
	produce.Env = append(os.Environ(), "RABBITMQ_URL="+broker.URL, "PARTITIONS=8")
	if out, err := produce.CombinedOutput(); err != nil {
		t.Fatalf("produce: %v\n%s", err, out)
	}
	must(t, channel.PublishWithContext(ctx, "", "OrderEvents-P0", true, false, amqp.Publishing{Body: []byte("no order")}))
	orders.until(ctx, "100 events are processed, and one is put aside", func(ctx context.Context) (bool, error) {
		dead, err := channel.QueueDeclarePassive("OrderEvents-dead", true, false, false, false, nil)
		return strings.Count(orders.logs(ctx), `"msg":"processed"`) == 100 && dead.Messages == 1, err
	})

	db, err := pgxpool.New(ctx, server.URL)
	must(t, err)
	t.Cleanup(db.Close)
	ranges.until(ctx, "every range is worked on", func(ctx context.Context) (bool, error) {
		var n int
		err := db.QueryRow(ctx, `SELECT count(DISTINCT partition) FROM run`).Scan(&n)
		return n == 6, err
	})
}

// asCopied has an example as its folder has it, but for the addresses, because all pods share the machine's ports, and the label by which the
// suite finds pods.
const asCopied = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%s]
labels:
  - pairs: {app: %s}
    includeTemplates: true
patches:
  - target: {kind: Deployment}
    patch: |-
      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}}
      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: HTTP_ADDRESS, value: "$(POD_IP):8080"}}
`

// copied applies the manifests of an example.
func copied(ctx context.Context, t *testing.T, env *suite.Suite, namespace *suite.Namespace, name, deployment string) *workload {
	t.Helper()
	kubeconfig, err := env.ControlPlane.Kubeconfig(controlplane.Admin)
	must(t, err)
	dir := t.TempDir()
	path, err := filepath.Rel(dir, folder(t, "examples", name))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, asCopied, path, deployment), 0o600))
	kubectl := filepath.Join(env.ControlPlane.Assets(), "kubectl")
	out, err := exec.CommandContext(ctx, kubectl, "--kubeconfig", kubeconfig, "apply", "-n", namespace.Name, "-k", dir).CombinedOutput() //nolint:gosec // as above
	if err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	w := &workload{t: t, suite: env, namespace: namespace, name: deployment}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.logs(context.WithoutCancel(ctx)))
		}
	})
	w.settled(ctx, 5)
	return w
}
