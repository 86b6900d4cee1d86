package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/idalloc/idalloc/internal/inject"
)

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

// Setup adds the webhook to a manager. ready fails until the webhook answers.
func Setup(mgr manager.Manager, o Options, log logr.Logger) (ready healthz.Checker, err error) {
	certified := func() error { return nil }
	config := webhook.Options{Host: o.Host, Port: o.Port, CertDir: o.CertDir, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS13
		c.NextProtos = []string{"http/1.1"} // the program is built without the HTTP/2 of net/http
	}}}
	if o.CertDir == "" {
		keeper := newKeeper(mgr, o, log)
		certified = func() error { _, err := keeper.certificate(nil); return err }
		config.TLSOpts = append(config.TLSOpts, func(c *tls.Config) { c.GetCertificate = keeper.certificate })
		if err := mgr.Add(keeper); err != nil {
			return nil, fmt.Errorf("certificates: %w", err)
		}
	}
	server := webhook.NewServer(config)
	server.Register("/pods", &webhook.Admission{Handler: pods(o.Image)})
	if err := mgr.Add(server); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	answers := server.StartedChecker()
	return func(r *http.Request) error {
		if err := certified(); err != nil {
			return err
		}
		return answers(r)
	}, nil
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
