package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is far longer than any control plane of a test lives.
const validity = 30 * 24 * time.Hour

// authority is the certificate authority of one control plane, and the
// directory of the files that its programs read.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// newAuthority makes the CA, the API server's certificate and the key that
// signs service account tokens.
func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate("idalloc-controlplane-ca")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, key: key, pem: encode("CERTIFICATE", der)}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	if err := a.write("ca.crt", a.pem); err != nil {
		return nil, err
	}
	if err := a.writeServer(); err != nil {
		return nil, err
	}
	if err := a.writeTokenKey(); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *authority) writeServer() error {
	template := certificate("kube-apiserver")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	cert, key, err := a.sign(template)
	if err != nil {
		return err
	}
	if err := a.write("api.crt", cert); err != nil {
		return err
	}
	return a.write("api.key", key)
}

func (a *authority) writeTokenKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := encodeKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := a.write("sa.key", private); err != nil {
		return err
	}
	return a.write("sa.pub", encode("PUBLIC KEY", public))
}

// client signs a certificate that authenticates as user in groups.
func (a *authority) client(user string, groups []string) (cert, key []byte, err error) {
	template := certificate(user)
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for %s: %w", template.Subject.CommonName, err)
	}
	key, err = encodeKey(private)
	return encode("CERTIFICATE", der), key, err
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name string, content []byte) error {
	return os.WriteFile(a.path(name), content, 0o600)
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validity),
	}
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encode("PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
