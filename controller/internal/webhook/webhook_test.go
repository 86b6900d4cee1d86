package webhook

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"net/http"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// A neighbour opens connections, and finishes no request. Each takes memory.
func TestHalfRequestsKeepFewConnections(t *testing.T) {
	const many, bound = 400, 256 // the bound of package serve
	folder := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err := errors.Join(err, os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, ok := free.Addr().(*net.TCPAddr)
	if err := free.Close(); err != nil || !ok {
		t.Fatal(err, ok)
	}
	mgr, err := manager.New(&rest.Config{Host: "http://api.invalid"}, manager.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Setup(ctx, mgr, Options{Host: "127.0.0.1", Port: address.Port, CertDir: folder}, logr.Discard()); err != nil {
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
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()                                      //nolint:errcheck // the test ends
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
