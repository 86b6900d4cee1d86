// Package web reads JSON over HTTP, for sources that have an HTTP API.
//
// A server may be untrusted, or its address chosen by another user. Such a server learns and reveals nothing: a request follows no redirect to another server,
// and the text of an error contains nothing of an answer, a password or a token.
package web

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// timeout limits one request.
	timeout = 10 * time.Second
	// most is the maximum length of an answer, in bytes. 4,096 partitions need less than a tenth of it.
	most = 16 << 20
	// redirects is the maximum number of redirects for one request.
	redirects = 3
)

// Server is a server with an HTTP API.
type Server struct {
	// URL is the address, with a path if the API does not begin at the root. It may contain a user and a password.
	URL *url.URL
	// User and PasswordFile are for basic authentication, and override those of URL. The file is read for each request. They may be empty.
	User, PasswordFile string
	// TokenFile is a file with a bearer token, which is sent only over https. It is read for each request, because tokens are renewed. If it is empty, no token
	// is sent.
	TokenFile string
	// Client sends the requests. nil means http.DefaultClient.
	Client *http.Client
}

// errNoAddress does not quote the parsed text, which may contain a password.
var errNoAddress = errors.New("this is no address such as http://prometheus:9090")

// Parse reads the address of a server. Its errors do not show the text.
func Parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errNoAddress
	}
	return u, nil
}

// NewClient returns a client that uses this TLS configuration. nil means the system's roots and no certificate.
func NewClient(config *tls.Config) *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout, IdleConnTimeout: time.Minute,
	}
	return &http.Client{Transport: transport}
}

// Get reads the JSON at a path below the server's address into the given value. It blocks for at most ten seconds.
func (s Server) Get(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u, err := s.at(path)
	if err != nil {
		return err
	}
	shown := u.String()
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("%s: the request cannot be made", shown)
	}
	if err := s.authorize(request); err != nil {
		return err
	}
	answer, err := s.client().Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", shown, cause(err))
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	_ = answer.Body.Close()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", shown, err)
	case len(body) > most:
		return fmt.Errorf("%s answers with more than %d bytes", shown, most)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answers %d %s: ask it by hand to see why", shown, answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	if json.Unmarshal(body, into) != nil {
		return fmt.Errorf("%s answers with %d bytes that are not the JSON of this API: is the address right?", shown, len(body))
	}
	return nil
}

// at returns the address of a path, without user and password.
func (s Server) at(path string) (*url.URL, error) {
	u := *s.URL
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	raw := strings.TrimSuffix(u.EscapedPath(), "/") + path
	var err error
	if u.Path, err = url.PathUnescape(raw); err != nil {
		return nil, fmt.Errorf("path %q: %w", raw, err)
	}
	u.RawPath = raw
	return &u, nil
}

// client returns a client that follows redirects only within the server. Another server would receive the request and some of the credentials. A server inside
// the cluster may show the autoscaler things that it shows no other client.
func (s Server) client() *http.Client {
	c := http.Client{}
	if s.Client != nil {
		c = *s.Client
	}
	c.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		from := via[0].URL
		switch {
		case to.URL.Scheme != from.Scheme || to.URL.Host != from.Host:
			return errors.New("it redirects to another host or port, which is not followed: give the address of the server itself")
		case len(via) > redirects:
			return fmt.Errorf("it redirects more than %d times", redirects)
		}
		return nil
	}
	return &c
}

// cause removes the address from the error of a failed request, because it may come from a redirect in an answer.
func cause(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (s Server) authorize(request *http.Request) error {
	user := s.User
	password, ok := s.URL.User.Password()
	if user == "" {
		user = s.URL.User.Username()
	}
	if s.PasswordFile != "" {
		text, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return fmt.Errorf("password: %w", err)
		}
		password, ok = strings.TrimRight(string(text), "\r\n"), true
	}
	if ok {
		request.SetBasicAuth(user, password)
	}
	if s.TokenFile == "" {
		return nil
	}
	if request.URL.Scheme != "https" {
		return errors.New("a bearer token is sent over https alone: use an address that begins with https://")
	}
	token, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return nil
}
