package connect_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/internal/connect"
)

// authority returns a certificate for this machine that trusts itself, and its PEM.
func authority(t *testing.T) (*tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// The kubelet writes a new ca.crt when the cluster's CA is replaced. By client-go's own time it is read after up to five minutes.
func TestACAThatWasReplacedIsReadAgainAtOnce(t *testing.T) {
	var shows atomic.Pointer[tls.Certificate]
	server := httptest.NewUnstartedServer(http.HandlerFunc(hangs))
	server.EnableHTTP2 = true
	first, ca := authority(t)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*shows.Load()}, NextProtos: []string{"h2"}}, nil
	}}
	shows.Store(first)
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.crt")
	replace := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(ca)
	client := clientOf(t, connect.Alive(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: file}}, 0))
	ask := func(what string, trusted bool) {
		t.Helper()
		answer, err := get(t, client, server.URL)
		untrusted := (*tls.CertificateVerificationError)(nil)
		for err != nil && !errors.As(err, &untrusted) { // the client has not heard yet that its connection was closed
			answer, err = get(t, client, server.URL)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
		if (err == nil) != trusted {
			t.Errorf("%s: %v", what, err)
		}
	}
	ask("with the first CA", true)
	second, ca := authority(t)
	shows.Store(second)
	server.CloseClientConnections()
	ask("with a new certificate", false)
	ask("before the file has the new CA", false)
	replace(ca[:40])
	ask("while the file is half written", false)
	replace(ca)
	ask("with the first CA, although the file has the new one", false)
	ask("after that", true)
}
