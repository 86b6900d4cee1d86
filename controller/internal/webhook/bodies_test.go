package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// post sends a body, and returns the status.
func post(ctx context.Context, server *httptest.Server, body io.Reader) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, body)
	if err != nil {
		return 0, err
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// A neighbour sends bodies of some megabytes, and each takes many times its size while it is decoded.
func TestBodiesAreReadAndDecodedFewAtATime(t *testing.T) {
	var now, most atomic.Int64
	server := httptest.NewServer(bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		now.Add(-1)
	})))
	defer server.Close()
	const body = 3 << 20
	var passed, refused atomic.Int64
	var clients sync.WaitGroup
	for range 4 * maxLarge {
		clients.Go(func() {
			switch status, err := post(t.Context(), server, bytes.NewReader(make([]byte, body))); {
			case err == nil && status == http.StatusOK:
				passed.Add(1)
			case err != nil || status == http.StatusServiceUnavailable: // the server may close the connection while the body is sent
				refused.Add(1)
			default:
				t.Errorf("status %d", status)
			}
		})
	}
	clients.Wait()
	if passed.Load() == 0 || passed.Load()+refused.Load() != 4*maxLarge {
		t.Errorf("%d passed and %d were refused", passed.Load(), refused.Load())
	}
	if most.Load() != 1 {
		t.Errorf("%d bodies were decoded at a time", most.Load())
	}
	if status, err := post(t.Context(), server, bytes.NewReader(make([]byte, maxBody+1))); err == nil && status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: status %d", status)
	}
}

// The API server's calls must pass although neighbours hold all that there is for large bodies.
func TestSlowBodiesDelayNoUsualPod(t *testing.T) {
	server := httptest.NewServer(bounded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	var clients sync.WaitGroup
	slow := make([]*io.PipeWriter, maxLarge)
	errEnd := errors.New("the client gives up")
	for i := range slow {
		var body io.Reader
		body, slow[i] = io.Pipe()
		clients.Go(func() {
			if status, err := post(t.Context(), server, body); !errors.Is(err, errEnd) {
				t.Errorf("a body that does not end: status %d, %v", status, err)
			}
		})
		if _, err := slow[i].Write(make([]byte, 2*usualBody)); err != nil {
			t.Fatal(err)
		}
	}
	full := func(ctx context.Context) (bool, error) {
		status, err := post(ctx, server, bytes.NewReader(make([]byte, usualBody)))
		return status == http.StatusServiceUnavailable, err
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, full); err != nil {
		t.Errorf("one more large pod is not refused: %v", err)
	}
	if status, err := post(t.Context(), server, bytes.NewReader(make([]byte, usualBody-1))); err != nil || status != http.StatusOK {
		t.Errorf("a usual pod: status %d, %v", status, err)
	}
	for _, body := range slow {
		_ = body.CloseWithError(errEnd)
	}
	clients.Wait()
}
