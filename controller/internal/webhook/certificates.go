package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// valid is how long a certificate is valid. It is renewed when less than ahead is left.
	valid, ahead = 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// backdated allows for clocks that are behind.
	backdated = time.Hour
	// every is how often a replica checks the Secret and the configuration, and again is the delay after a failure.
	every, again = time.Minute, time.Second

	authorityKey = "ca.crt"
)

// keeper makes the certificate and keeps the caBundle of the configuration up to date. It reads and writes these two objects by name, so it needs no permission
// to list or watch. rotator.AddRotator needs that, and serves only what the kubelet has mounted, up to 90 seconds later.
type keeper struct {
	reader          client.Reader
	writer          client.Writer
	log             logr.Logger
	name, namespace string
	current         atomic.Pointer[tls.Certificate]
}

func newKeeper(mgr manager.Manager, o Options, log logr.Logger) *keeper {
	return &keeper{reader: mgr.GetAPIReader(), writer: mgr.GetClient(), log: log, name: o.Name, namespace: o.Namespace}
}

// NeedLeaderElection returns false: every replica serves.
func (k *keeper) NeedLeaderElection() bool { return false }

// Start keeps the certificate and the caBundle until the context ends.
func (k *keeper) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		rest, err := every, k.keep(ctx, time.Now())
		if err != nil && ctx.Err() == nil {
			rest = again
			// Log: the webhook's certificates cannot be kept up to date; it serves the last ones, if there are any.
			// Do: see the error. The Secret and the MutatingWebhookConfiguration are part of the installation.
			k.log.Info("cannot keep the certificates of the webhook", "webhook", k.name, "error", err.Error())
		}
		_ = wait.PollUntilContextCancel(ctx, wait.Jitter(rest, 0.1), false, func(context.Context) (bool, error) { return true, nil })
	}
	return nil
}

// certificate returns the certificate to serve, or an error if there is none yet. It implements tls.Config.GetCertificate.
func (k *keeper) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.current.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("the webhook has no certificate yet")
}

// keep renews the certificate in the Secret if necessary, and serves it once the API server trusts it.
func (k *keeper) keep(ctx context.Context, now time.Time) error {
	var secret corev1.Secret
	if err := k.reader.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: k.name}, &secret); err != nil {
		return fmt.Errorf("read the Secret: %w", err)
	}
	dns, usages := k.name+"."+k.namespace+".svc", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ok, err := rotator.ValidCert(secret.Data[authorityKey], secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], dns, &usages, now.Add(ahead)); !ok || err != nil {
		if err := renew(&secret, &rotator.CertRotator{CAName: k.name, CAOrganization: "idalloc", DNSName: dns, ExtKeyUsages: &usages}, now); err != nil {
			return err
		}
		if err := k.writer.Update(ctx, &secret); err != nil { // a conflict: another replica was first
			return fmt.Errorf("write the Secret: %w", err)
		}
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	if err := k.trust(ctx, secret.Data[authorityKey]); err != nil {
		return err
	}
	k.current.Store(&pair)
	return nil
}

// renew puts a new certificate into the Secret. The previous authority stays trusted, because other replicas serve its certificate for a while. The authority's
// key is not kept.
func renew(secret *corev1.Secret, r *rotator.CertRotator, now time.Time) error {
	authority, err := r.CreateCACert(now.Add(-backdated), now.Add(valid))
	if err != nil {
		return fmt.Errorf("make the authority: %w", err)
	}
	cert, key, err := r.CreateCertPEM(authority, now.Add(-backdated), now.Add(valid))
	if err != nil {
		return fmt.Errorf("make the certificate: %w", err)
	}
	before := secret.Data[authorityKey]
	if end := bytes.Index(before, []byte("-----END CERTIFICATE-----\n")); end >= 0 {
		before = before[:end+len("-----END CERTIFICATE-----\n")]
	}
	secret.Data = map[string][]byte{authorityKey: append(authority.CertPEM, before...), corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}
	return nil
}

// trust sets the caBundle of the configuration.
func (k *keeper) trust(ctx context.Context, authority []byte) error {
	var c admissionv1.MutatingWebhookConfiguration
	if err := k.reader.Get(ctx, client.ObjectKey{Name: k.name}, &c); err != nil {
		return fmt.Errorf("read the MutatingWebhookConfiguration: %w", err)
	}
	same := true
	for i := range c.Webhooks {
		same = same && bytes.Equal(c.Webhooks[i].ClientConfig.CABundle, authority)
		c.Webhooks[i].ClientConfig.CABundle = authority
	}
	if same {
		return nil
	}
	if err := k.writer.Update(ctx, &c); err != nil {
		return fmt.Errorf("write the MutatingWebhookConfiguration: %w", err)
	}
	return nil
}
