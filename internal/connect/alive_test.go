package connect_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/test/apifake"
)

// hangs answers each request, and then never ends the answer to one for /watch.
func hangs(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush() // the client may be gone
	if r.URL.Path == "/watch" {
		<-r.Context().Done()
	}
}

func clientOf(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(request)
}

// A balancer forgets its connections. Packets of theirs are dropped, and new connections pass.
func TestAConnectionThatDiesUnnoticedIsMadeAgain(t *testing.T) {
	for fenceAfter, within := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Hour: 10 * time.Second, 30 * time.Second: 6 * time.Second, 3 * time.Second: time.Second} {
		t.Run(fenceAfter.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := apifake.NewNetwork(t, http.HandlerFunc(hangs))
				config := n.Config()
				client := clientOf(t, connect.Alive(config, fenceAfter))
				watch, err := get(t, client, config.Host+"/watch")
				if err != nil {
					t.Fatal(err)
				}
				if watch.ProtoMajor != 2 {
					t.Fatalf("the client speaks %s", watch.Proto)
				}
				synctest.Wait()
				n.Cut()
				at := time.Now()
				if _, err := io.ReadAll(watch.Body); err == nil {
					t.Error("a watch ends as if all were well")
				}
				if took := time.Since(at); took > within {
					t.Errorf("a watch hears nothing for %s, want %s", took, within)
				}
				answer, err := get(t, client, config.Host+"/")
				if err != nil {
					t.Fatal("the next request fails: ", err)
				}
				_ = answer.Body.Close()
				_ = watch.Body.Close()
			})
		})
	}
}

// Packets of all connections are dropped.
func TestAConnectionThatCannotBeMadeIsGivenUp(t *testing.T) {
	for fenceAfter, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 30 * time.Second: time.Second, 3 * time.Second: time.Second / 2} {
		t.Run(fenceAfter.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := clientOf(t, connect.Alive(&rest.Config{Host: "https://192.0.2.1", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}}, fenceAfter))
				at := time.Now()
				answer, err := get(t, client, "https://192.0.2.1/")
				if err == nil {
					_ = answer.Body.Close()
				}
				if took := time.Since(at); !errors.Is(err, context.DeadlineExceeded) || took != want {
					t.Errorf("after %s: %v, want an end after %s", took, err, want)
				}
			})
		})
	}
}

// The kubelet has written a new token meanwhile.
func TestATokenThatIsRefusedIsReadAgainAtOnce(t *testing.T) {
	var valid atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+*valid.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	renew := func(token string) {
		valid.Store(&token)
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	renew("first")
	client := clientOf(t, connect.Alive(&rest.Config{Host: server.URL, BearerToken: "first", BearerTokenFile: file}, 0))
	ask := func(what string, want int) {
		t.Helper()
		answer, err := get(t, client, server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: the answer is %d, want %d", what, answer.StatusCode, want)
		}
	}
	ask("with the first token", http.StatusOK)
	renew("second")
	ask("with the first token, which is not valid any more", http.StatusUnauthorized)
	ask("after that", http.StatusOK)
}

// A caller with a transport of its own knows what it does.
func TestATransportOfOnesOwnStays(t *testing.T) {
	config := &rest.Config{Transport: http.DefaultTransport}
	if connect.Alive(config, time.Minute) != config {
		t.Error("the config changes")
	}
}
