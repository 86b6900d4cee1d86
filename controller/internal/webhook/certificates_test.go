package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const name, namespace = "idalloc-webhook", "idalloc-system"

// cluster has an empty Secret and the configuration with two webhooks.
func cluster(hooks interceptor.Funcs) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(hooks).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionv1.MutatingWebhook{{Name: "a"}, {Name: "b"}}},
	).Build()
}

func keeperOf(c client.Client) *keeper {
	return &keeper{reader: c, writer: c, log: logr.Discard(), name: name, namespace: namespace}
}

// trusts returns whether the API server accepts what a replica serves, at each webhook of the configuration.
func trusts(t *testing.T, c client.Client, k *keeper, now time.Time) bool {
	t.Helper()
	var is admissionv1.MutatingWebhookConfiguration
	if err := c.Get(context.Background(), client.ObjectKey{Name: name}, &is); err != nil {
		t.Fatal(err)
	}
	served, err := k.certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range is.Webhooks {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(hook.ClientConfig.CABundle)
		if _, err := leaf(t, served).Verify(x509.VerifyOptions{DNSName: name + "." + namespace + ".svc", Roots: roots, CurrentTime: now}); err != nil {
			return false
		}
	}
	return true
}

func leaf(t *testing.T, c *tls.Certificate) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func keep(t *testing.T, k *keeper, now time.Time) {
	t.Helper()
	if err := k.keep(context.Background(), now); err != nil {
		t.Fatal(err)
	}
}

func TestReplicasServeOneCertificateThatTheAPIServerTrusts(t *testing.T) {
	c, now := cluster(interceptor.Funcs{}), time.Now()
	one, other := keeperOf(c), keeperOf(c)
	if _, err := one.certificate(nil); err == nil {
		t.Error("a replica that has no certificate serves one")
	}
	keep(t, one, now)
	keep(t, other, now)
	if !trusts(t, c, one, now) || !bytes.Equal(one.current.Load().Certificate[0], other.current.Load().Certificate[0]) {
		t.Error("the replicas serve two certificates, or one that is not trusted")
	}
}

func TestARotationInterruptsNothing(t *testing.T) {
	c, now := cluster(interceptor.Funcs{}), time.Now()
	one, other := keeperOf(c), keeperOf(c)
	keep(t, one, now)
	keep(t, other, now)
	before := one.current.Load().Certificate[0]
	keep(t, one, now.Add(valid-ahead-time.Hour))
	if !bytes.Equal(before, one.current.Load().Certificate[0]) {
		t.Error("the certificate changed before its time")
	}
	later := now.Add(valid - ahead + time.Hour)
	keep(t, one, later)
	if bytes.Equal(before, one.current.Load().Certificate[0]) {
		t.Fatal("the certificate stayed")
	}
	if !trusts(t, c, one, later) || !trusts(t, c, other, later) {
		t.Error("the API server does not trust both the old and the new certificate")
	}
	keep(t, other, later)
	if !bytes.Equal(one.current.Load().Certificate[0], other.current.Load().Certificate[0]) {
		t.Error("the other replica keeps the old certificate")
	}
}

// A GitOps tool may put back a caBundle that is not in its manifests.
func TestTheBundleComesBack(t *testing.T) {
	c, now := cluster(interceptor.Funcs{}), time.Now()
	k := keeperOf(c)
	keep(t, k, now)
	var is admissionv1.MutatingWebhookConfiguration
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &is); err != nil {
		t.Fatal(err)
	}
	is.Webhooks[1].ClientConfig.CABundle = nil
	if err := c.Update(t.Context(), &is); err != nil {
		t.Fatal(err)
	}
	keep(t, k, now)
	if !trusts(t, c, k, now) {
		t.Error("the bundle stays away")
	}
}

func TestAReplicaServesNothingThatTheAPIServerDoesNotTrust(t *testing.T) {
	refused := errors.New("refused")
	c := cluster(interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
		if _, ok := o.(*admissionv1.MutatingWebhookConfiguration); ok {
			return refused
		}
		return c.Update(ctx, o, options...)
	}})
	k := keeperOf(c)
	if err := k.keep(t.Context(), time.Now()); !errors.Is(err, refused) {
		t.Fatalf("keep: %v", err)
	}
	if _, err := k.certificate(nil); err == nil {
		t.Error("the replica serves a certificate before the bundle has its authority")
	}
}

func TestTheReplicaThatIsLaterTakesTheOthersCertificate(t *testing.T) {
	lost := false
	c := cluster(interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
		if _, ok := o.(*corev1.Secret); ok && !lost {
			lost = true
			return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, name, nil)
		}
		return c.Update(ctx, o, options...)
	}})
	late, now := keeperOf(c), time.Now()
	if err := late.keep(t.Context(), now); !apierrors.IsConflict(err) {
		t.Fatalf("keep: %v", err)
	}
	first := keeperOf(c)
	keep(t, first, now)
	keep(t, late, now)
	if !bytes.Equal(first.current.Load().Certificate[0], late.current.Load().Certificate[0]) {
		t.Error("there are two certificates")
	}
}
