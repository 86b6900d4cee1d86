// Package web reads JSON over HTTP for the sources that are servers with an HTTP API.
package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// timeout bounds one request.
	timeout = 10 * time.Second
	// most is how long an answer may be, in bytes: 4,096 partitions need less than a tenth of it.
	most = 16 << 20
)

// Server is a server with an HTTP API.
type Server struct {
	// URL is the address, with a path if the API does not begin at the root. It may have a user and a password.
	URL *url.URL
	// TokenFile names a file with a bearer token. It is read for each request, because tokens are renewed. Empty: no token.
	TokenFile string
	// Client sends the requests. nil stands for http.DefaultClient.
	Client *http.Client
}

// Parse reads the address of a server.
func Parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("not an address: %w", err)
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return nil, fmt.Errorf("%q is not an address such as http://prometheus:9090", u.Redacted())
	}
	return u, nil
}

// Get reads what is at the path below the server's address. into gets the JSON. The texts of its errors have no password.
func (s Server) Get(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u := *s.URL
	u.User = nil
	raw := strings.TrimSuffix(u.EscapedPath(), "/") + path
	var err error
	if u.Path, err = url.PathUnescape(raw); err != nil {
		return fmt.Errorf("path %q: %w", raw, err)
	}
	u.RawPath, u.RawQuery = raw, query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	if err := s.authorize(request); err != nil {
		return err
	}
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	_ = answer.Body.Close()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", u.Redacted(), err)
	case len(body) > most:
		return fmt.Errorf("%s answers with more than %d bytes", u.Redacted(), most)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answers %s: %s", u.Redacted(), answer.Status, start(body))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s answers %s, which cannot be read: %w", u.Redacted(), start(body), err)
	}
	return nil
}

func (s Server) authorize(request *http.Request) error {
	if password, ok := s.URL.User.Password(); ok {
		request.SetBasicAuth(s.URL.User.Username(), password)
	}
	if s.TokenFile == "" {
		return nil
	}
	token, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return nil
}

// start returns the first words of an answer.
func start(body []byte) string {
	const most = 200
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
