package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/idalloc/idalloc/autoscaler/internal/loop"
)

// certificate makes a certificate that signs itself, for servers and clients at 127.0.0.1. Its key is beside it, with .key behind its name.
func certificate(t *testing.T) (path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path = written(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	if err := os.WriteFile(path+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// written returns the path of a file with a text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// trusting returns the configuration of a server with this certificate, which takes clients that have it, too.
func trusting(t *testing.T, path string) *tls.Config {
	t.Helper()
	config, err := (&access{caFile: path, certFile: path, keyFile: path + ".key"}).tls()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := config.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*pair}, ClientCAs: config.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert}
}

// flagged returns the source of these flags.
func flagged(t *testing.T, args ...string) loop.Source {
	t.Helper()
	o, f := &sources{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	o.bind(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	s, err := o.source()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAServerIsReachedWithACertificateAndAPassword(t *testing.T) {
	path := certificate(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "guest" || password != "s3cret" {
			t.Errorf("authorized as %q with %q", user, password)
		}
		_, _ = w.Write([]byte(`[{"messages":0,"message_stats":{"publish":0},"name":"orders-P0"}]`))
	}))
	server.TLS = trusting(t, path)
	server.StartTLS()
	t.Cleanup(server.Close)
	args := []string{
		"--source=rabbitmq", "--rabbitmq-prefix=orders-P", "--source-url=" + server.URL, "--source-user=guest", "--source-password-file=" + written(t, "s3cret\n"),
		"--source-ca-file=" + path, "--source-cert-file=" + path, "--source-key-file=" + path + ".key",
	}
	if r, err := flagged(t, args...).Read(t.Context()); err != nil || len(r.Values) != 1 {
		t.Errorf("%v, %v", r, err)
	}
	for want, missing := range map[string][]string{"unknown authority": args[5:6], "certificate required": args[6:]} {
		var rest []string
		for _, arg := range args {
			if !strings.Contains(strings.Join(missing, " "), arg) {
				rest = append(rest, arg)
			}
		}
		if _, err := flagged(t, rest...).Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %v: %v, want %q", missing, err, want)
		}
	}
}

func TestAUserLogsInToKafka(t *testing.T) {
	path := certificate(t)
	config := trusting(t, path)
	config.ClientAuth = tls.NoClientCert
	for mechanism, kind := range map[string]string{"plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512"} {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"), kfake.EnableSASL(), kfake.Superuser(kind, "guest", "s3cret"), kfake.TLS(config))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		password := written(t, "wrong")
		s := flagged(t, "--source=kafka", "--kafka-topic=orders", "--kafka-brokers="+strings.Join(cluster.ListenAddrs(), ","), "--kafka-tls", "--source-ca-file="+path,
			"--kafka-sasl="+mechanism, "--source-user=guest", "--source-password-file="+password)
		if mechanism == "plain" { // a broker tells more than the code
			cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(kmsg.Request) (kmsg.Response, error, bool) {
				answer := kmsg.NewPtrSASLAuthenticateResponse()
				answer.Version, answer.ErrorCode, answer.ErrorMessage = 2, kerr.SaslAuthenticationFailed.Code, new("s3cret")
				return answer, nil, true
			})
		}
		if _, err := s.Read(t.Context()); err == nil || strings.Contains(err.Error(), "wrong") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s with a wrong password: %v", mechanism, err)
		}
		if err := os.WriteFile(password, []byte("s3cret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Read(t.Context()); err != nil || len(r.Values) != 3 {
			t.Errorf("%s: %v, %v", mechanism, r, err)
		}
	}
}

// The system's roots are read once in a process, so the test is one of its own.
func TestTheProgramHasRootsWhereTheSystemHasNone(t *testing.T) {
	const nowhere = "/nonexistent"
	if os.Getenv("SSL_CERT_FILE") != nowhere {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // the test itself
		again.Env = append(os.Environ(), "SSL_CERT_FILE="+nowhere, "SSL_CERT_DIR="+nowhere)
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	if pool, err := x509.SystemCertPool(); err != nil || pool.Equal(x509.NewCertPool()) {
		t.Errorf("it has none: %v", err)
	}
}
