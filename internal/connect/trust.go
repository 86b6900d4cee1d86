package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"sync"
)

// trusting is a transport that reads its CA file again after a certificate that it does not trust. That request fails; the next one trusts the new CA.
type trusting struct {
	file string

	mu  sync.Mutex
	now http.RoundTripper
	// read is the content of the file after the last such certificate, empty before the first.
	read string
}

// RoundTrip implements http.RoundTripper.
func (t *trusting) RoundTrip(r *http.Request) (*http.Response, error) {
	now := t.WrappedRoundTripper()
	answer, err := now.RoundTrip(r)
	if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
		t.renew(now)
	}
	return answer, err
}

// WrappedRoundTripper returns the transport in use.
func (t *trusting) WrappedRoundTripper() http.RoundTripper {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// renew makes the next requests trust the file's current content. A file that is unreadable or has no certificate changes nothing: it may be half written.
func (t *trusting) renew(failed http.RoundTripper) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, cas := innermost(failed), x509.NewCertPool()
	text, err := os.ReadFile(t.file)
	if err != nil || old == nil || t.now != failed || string(text) == t.read || !cas.AppendCertsFromPEM(text) {
		return
	}
	next := old.Clone()
	next.TLSClientConfig.RootCAs = cas
	t.now, t.read = next, string(text)
	old.CloseIdleConnections()
}
