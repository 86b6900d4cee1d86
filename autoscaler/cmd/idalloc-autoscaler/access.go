package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	_ "golang.org/x/crypto/x509roots/fallback" // the image has no files of CA roots

	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
	"github.com/idalloc/idalloc/internal/cli"
)

// access holds the flags for reaching a source of any kind. Secrets come from files, which are read at each use, because secrets are renewed.
type access struct {
	tokenFile, user, passwordFile string
	caFile, certFile, keyFile     string
}

func (a *access) bind(f *pflag.FlagSet) {
	f.StringVar(&a.tokenFile, "source-token-file", "", "file with a bearer token, for https alone")
	f.StringVar(&a.user, "source-user", "", "user of the source")
	f.StringVar(&a.passwordFile, "source-password-file", "", "file with that user's password")
	f.StringVar(&a.caFile, "source-ca-file", "", "file with the source's CAs, in PEM; empty: the system's")
	f.StringVar(&a.certFile, "source-cert-file", "", "file with a client certificate, in PEM")
	f.StringVar(&a.keyFile, "source-key-file", "", "file with its key, in PEM")
}

// server returns the server at an address.
func (a *access) server(address *url.URL) (web.Server, error) {
	config, err := a.tls()
	switch {
	case err != nil:
		return web.Server{}, err
	case config != nil && address.Scheme != "https":
		return web.Server{}, cli.Usagef("--source-ca-file and --source-cert-file are for TLS: use a --source-url that begins with https://")
	case a.tokenFile != "" && address.Scheme != "https":
		return web.Server{}, cli.Usagef("--source-token-file: a bearer token is sent over https alone: use a --source-url that begins with https://")
	case (a.user == "") != (a.passwordFile == ""):
		return web.Server{}, cli.Usagef("--source-user needs --source-password-file, and the other way around")
	}
	return web.Server{URL: address, User: a.user, PasswordFile: a.passwordFile, TokenFile: a.tokenFile, Client: web.NewClient(config)}, nil
}

// tls returns the TLS configuration, or nil if no flag is about TLS.
func (a *access) tls() (*tls.Config, error) {
	if (a.certFile == "") != (a.keyFile == "") {
		return nil, cli.Usagef("--source-cert-file needs --source-key-file, and the other way around")
	}
	if a.caFile == "" && a.certFile == "" {
		return nil, nil //nolint:nilnil // the zero value of an option
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.caFile != "" {
		text, err := os.ReadFile(a.caFile)
		if err != nil {
			return nil, fmt.Errorf("--source-ca-file: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, cli.Usagef("--source-ca-file %s has no certificate in PEM", a.caFile)
		}
	}
	if a.certFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(a.certFile, a.keyFile)
			return &pair, err
		}
		if _, err := config.GetClientCertificate(nil); err != nil {
			return nil, fmt.Errorf("--source-cert-file, --source-key-file: %w", err)
		}
	}
	return config, nil
}

// unused returns an error if a user is named but the source would not use it.
func (a *access) unused() error {
	if name := cmp.Or(a.user, a.passwordFile); name != "" {
		return cli.Usagef("--source-user, --source-password-file: say with --kafka-sasl how that user logs in to Kafka")
	}
	return nil
}

// mechanism returns the way in which the user logs in to Kafka.
func (a *access) mechanism(name string) (sasl.Mechanism, error) {
	if a.user == "" || a.passwordFile == "" {
		return nil, cli.Usagef("--kafka-sasl %s needs --source-user and --source-password-file", name)
	}
	if _, err := a.password(); err != nil {
		return nil, err
	}
	scrams := func(context.Context) (scram.Auth, error) {
		password, err := a.password()
		return scram.Auth{User: a.user, Pass: password}, err
	}
	switch name {
	case "plain":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := a.password()
			return plain.Auth{User: a.user, Pass: password}, err
		}), nil
	case "scram-sha-256":
		return scram.Sha256(scrams), nil
	case "scram-sha-512":
		return scram.Sha512(scrams), nil
	}
	return nil, cli.Usagef("--kafka-sasl %q: use plain, scram-sha-256 or scram-sha-512", name)
}

func (a *access) password() (string, error) {
	text, err := os.ReadFile(a.passwordFile)
	if err != nil {
		return "", fmt.Errorf("--source-password-file: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
