package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// certificates returns a folder with a certificate and its key.
func certificates(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err := errors.Join(err, os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := controlplane.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return int(port)
}

// A neighbour opens connections, and finishes no request. Each takes memory.
func TestHalfRequestsKeepFewConnections(t *testing.T) {
	const many, bound = 400, 256 // the bound of package serve
	port := freePort(t)
	mgr, err := manager.New(&rest.Config{Host: "http://api.invalid"}, manager.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Setup(ctx, mgr, Options{Host: "127.0.0.1", Port: port, CertDir: certificates(t)}, logr.Discard()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	closed := make(chan struct{}, many)
	for range many {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write([]byte{22, 3, 1}); err != nil { // the begin of a TLS handshake
			t.Fatal(err)
		}
		go func() {
			_, _ = conn.Read(make([]byte, 1))
			closed <- struct{}{}
		}()
	}
	deadline := time.After(4 * time.Second) // half handshakes end by themselves after five
	for n := range many - bound {
		select {
		case <-closed:
		case <-deadline:
			t.Fatalf("%d of %d half requests keep their connection, want %d at most", many-n, many, bound)
		}
	}
}

// managed is a manager that only collects what it is to run.
type managed struct {
	manager.Manager

	client    client.Client
	runnables []manager.Runnable
}

func (m *managed) Add(r manager.Runnable) error { m.runnables = append(m.runnables, r); return nil }
func (m *managed) GetAPIReader() client.Reader  { return m.client }
func (m *managed) GetClient() client.Client     { return m.client }
func (m *managed) of(t *testing.T, o Options) healthz.Checker {
	t.Helper()
	ready, err := Setup(t.Context(), m, o, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return ready
}

// The API server calls any replica, and only one is the leader.
func TestEveryReplicaServes(t *testing.T) {
	for name, tc := range map[string]struct {
		directory string
		runs      int
	}{"the replicas make the certificates": {"", 2}, "a directory has them": {certificates(t), 2}} {
		m := &managed{client: cluster(interceptor.Funcs{})}
		m.of(t, Options{Name: name, Namespace: namespace, Host: "127.0.0.1", Port: freePort(t), CertDir: tc.directory})
		if len(m.runnables) != tc.runs {
			t.Errorf("%s: the manager runs %d things, not %d", name, len(m.runnables), tc.runs)
		}
		for _, r := range m.runnables {
			if of, is := r.(manager.LeaderElectionRunnable); !is || of.NeedLeaderElection() {
				t.Errorf("%s: only the leader runs %T", name, r)
			}
		}
	}
}

func TestAReplicaIsReadyWhileItsWebhookAnswers(t *testing.T) {
	m := &managed{client: cluster(interceptor.Funcs{})}
	ready := m.of(t, Options{Name: name, Namespace: namespace, Host: "127.0.0.1", Port: freePort(t)})
	if ready(nil) == nil {
		t.Error("it is ready without a certificate")
	}
	own, is := m.runnables[0].(*keeper)
	if !is {
		t.Fatalf("the first is %T", m.runnables[0])
	}
	keep(t, own, time.Now())
	if ready(nil) == nil {
		t.Error("it is ready before the webhook is served")
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.runnables[1].Start(ctx) }()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return ready(nil) == nil, nil })
	if err != nil {
		t.Errorf("it does not get ready: %v", ready(nil))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if ready(nil) == nil {
		t.Error("it is ready although the webhook does not answer any more")
	}
}

// A pod that asks for an id must not start without one, and a request to create a pod must not hang.
func TestAWebhookThatDoesNotAnswerRefusesPodsSoon(t *testing.T) {
	text, err := os.ReadFile("../../../config/webhook/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c admissionv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &c); err != nil || len(c.Webhooks) != 2 {
		t.Fatalf("%d webhooks: %v", len(c.Webhooks), err)
	}
	for _, hook := range c.Webhooks {
		if hook.FailurePolicy == nil || *hook.FailurePolicy != admissionv1.Fail || hook.TimeoutSeconds == nil || *hook.TimeoutSeconds != 5 {
			t.Errorf("%s: failurePolicy %v, timeoutSeconds %v", hook.Name, hook.FailurePolicy, hook.TimeoutSeconds)
		}
	}
}
