package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
)

// hidden is in each answer, each password and each token. No error shows it.
const hidden = "s3cret"

func serve(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	return server
}

// reach returns the server at an address, whose user, password and token are sent.
func reach(t *testing.T, address string, client *http.Client) web.Server {
	t.Helper()
	u, err := web.Parse(strings.Replace(address, "://", "://guest:"+hidden+"@", 1))
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(hidden+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return web.Server{URL: u, TokenFile: token, Client: client}
}

func TestRedirectsStayWithinTheServer(t *testing.T) {
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked: %s %v", r.URL, r.Header)
	})
	var to string
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/here" {
			_, _ = w.Write([]byte(`7`))
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	s := reach(t, server.URL, server.Client())
	plain := strings.Replace(server.URL, "https", "http", 1)
	for _, to = range []string{other.URL + "/" + hidden, plain + "/" + hidden, "//localhost/" + hidden, "/again"} {
		var into int
		if err := s.Get(t.Context(), "/there", nil, &into); err == nil || !strings.Contains(err.Error(), "redirects") || strings.Contains(err.Error(), hidden) {
			t.Errorf("to %s: %v", to, err)
		}
	}
	to = "/here"
	var into int
	if err := s.Get(t.Context(), "/there", nil, &into); err != nil || into != 7 {
		t.Errorf("to another path: %d, %v", into, err)
	}
}

func TestATokenIsSentOverHTTPSAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it was sent: %v", r.Header) }))
	t.Cleanup(server.Close)
	var into any
	if err := reach(t, server.URL, nil).Get(t.Context(), "/", nil, &into); err == nil || !strings.Contains(err.Error(), "over https alone") {
		t.Errorf("%v", err)
	}
}

func TestErrorsShowNothingOfAnswersAndPasswords(t *testing.T) {
	for want, answer := range map[string]http.HandlerFunc{
		"401 Unauthorized":          func(w http.ResponseWriter, _ *http.Request) { http.Error(w, hidden, http.StatusUnauthorized) },
		"not the JSON of this API":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"` + hidden)) },
		"not the JSON of this API ": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`"` + hidden + `"`)) },
		"EOF":                       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		server := serve(t, answer)
		var into struct{}
		err := reach(t, server.URL, server.Client()).Get(t.Context(), "/x", nil, &into)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) || strings.Contains(err.Error(), hidden) || !strings.Contains(err.Error(), "/x") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, text := range []string{
		"", "prometheus:9090", "ftp://x", "http://", "http://u:" + hidden + "@a b", "u:" + hidden + "@rabbitmq:15672", "http://u:" + hidden + "#@x", "http://u:%" + hidden + "@x",
	} {
		if _, err := web.Parse(text); err == nil || strings.Contains(err.Error(), hidden) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnIdleConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := web.NewClient(nil)
		here, there := net.Pipe()
		transport := client.Transport.(*http.Transport) //nolint:errcheck,forcetypeassert // NewClient made it
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return here, nil }
		closed := make(chan error, 1)
		go func() {
			requests := bufio.NewReader(there)
			_, err := http.ReadRequest(requests)
			if err == nil {
				_, err = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7")
			}
			if err == nil {
				_, err = requests.ReadByte()
			}
			closed <- err
		}()
		var into int
		server := web.Server{URL: &url.URL{Scheme: "http", Host: "127.0.0.1"}, Client: client}
		if err := server.Get(t.Context(), "/", nil, &into); err != nil || into != 7 {
			t.Errorf("%d, %v", into, err)
		}
		select {
		case err := <-closed:
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		case <-time.After(time.Hour): // of the bubble
			t.Error("it is open after an hour")
			client.CloseIdleConnections()
		}
	})
}
