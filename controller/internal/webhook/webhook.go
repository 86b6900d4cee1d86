package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/internal/serve"
)

// path is the path of the webhook's Service.
const path = "/pods"

// Options configures Setup.
type Options struct {
	// Name is the name of the MutatingWebhookConfiguration, the Service and the Secret.
	Name string
	// Namespace is the namespace of the Service and the Secret.
	Namespace string
	// Host and Port are the address of the webhook. An empty host means all addresses, and port 0 means 9443.
	Host string
	Port int
	// CertDir contains tls.crt and tls.key. If it is empty, the replicas make the certificates.
	CertDir string
	// Image is the sidecar's image. Empty means inject.DefaultImage.
	Image string
}

// Setup adds the webhook to a manager, and listens. ready fails while there is no certificate, or while nothing answers.
//
// The server of controller-runtime accepts any number of connections, and anyone may open them.
func Setup(ctx context.Context, mgr manager.Manager, o Options, log logr.Logger) (ready healthz.Checker, err error) {
	certified := func() error { return nil }
	secure := &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"}, // the program is built without the HTTP/2 of net/http
	}
	if o.CertDir == "" {
		keeper := newKeeper(mgr, o, log)
		certified = func() error { _, err := keeper.certificate(nil); return err }
		secure.GetCertificate, err = keeper.certificate, mgr.Add(keeper)
	} else {
		var files *certwatcher.CertWatcher
		if files, err = certwatcher.New(filepath.Join(o.CertDir, "tls.crt"), filepath.Join(o.CertDir, "tls.key")); err == nil {
			secure.GetCertificate, err = files.GetCertificate, mgr.Add(files)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	hook, err := admission.StandaloneWebhook(&admission.Webhook{Handler: pods(o.Image)}, admission.StandaloneOptions{MetricsPath: path})
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	paths := http.NewServeMux()
	paths.Handle(path, bounded(hook))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(o.Host, strconv.Itoa(cmp.Or(o.Port, 9443))))
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	answers := &answering{Listener: listener}
	if err := mgr.Add(&manager.Server{Name: "webhook", Server: serve.Bounded(paths), Listener: tls.NewListener(answers, secure)}); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return func(*http.Request) error {
		if !answers.now.Load() {
			return errors.New("the webhook does not answer yet, or no longer")
		}
		return certified()
	}, nil
}

// answering records whether a server accepts connections.
type answering struct {
	net.Listener

	now atomic.Bool
}

func (a *answering) Accept() (net.Conn, error) {
	a.now.Store(true)
	return a.Listener.Accept()
}

func (a *answering) Close() error {
	a.now.Store(false)
	return a.Listener.Close()
}

// pods completes a pod, or refuses it with the message of kubectl idalloc inject.
func pods(image string) admission.HandlerFunc {
	return func(_ context.Context, r admission.Request) admission.Response {
		pod, err := inject.Pod(r.Object.Raw, image)
		if err != nil {
			return admission.Errored(http.StatusUnprocessableEntity, err)
		}
		return admission.PatchResponseFromRaw(r.Object.Raw, pod)
	}
}
