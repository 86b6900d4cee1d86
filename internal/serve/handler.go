package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/idalloc/idalloc/internal/meter"
)

const (
	// MaxWait limits ?wait of GET /v1/identity, so that no request holds its connection forever.
	MaxWait = 5 * time.Minute
	// StaleHeader is "true" in answers of GET /v1/identity while the API server cannot be reached. It is a header, so that it changes neither the body nor the
	// ETag.
	StaleHeader = "Idalloc-Stale"
	// writeTimeout is the maximum time for writing an answer.
	writeTimeout = 10 * time.Second
	// retryAfter is the number of seconds after which a client may try to wait again.
	retryAfter = "5"
)

// HealthFunc returns nil while the program works. Otherwise it returns the reason for a restart.
type HealthFunc func(context.Context) error

// DrainedFunc handles the program's report that it has stopped. It returns an error if no stop waits for this report. The program gets the error's text.
type DrainedFunc func(Report) error

type handler struct {
	hub    *Hub
	health HealthFunc
	// waiting explains what the instance waits for, or returns "". It may be nil.
	waiting func() string
	// drained is nil if no stop ever waits for the program's report.
	drained DrainedFunc
	// pause is nil if the work on partitions cannot be stopped.
	pause PauseFunc
	// metrics writes the metrics. It is nil if there are none.
	metrics func(io.Writer) error
	// secret must be in each POST. If it is empty, every POST is refused.
	secret string
	// closing ends the long polls.
	closing chan struct{}
	conns   *connections
}

// routes returns the handler of all routes. The mux handles HEAD like GET. It answers other methods with 405 and the header Allow, and other paths with 404.
func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/identity", h.identity)
	mux.HandleFunc("GET /metrics", h.getMetrics)
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("POST /v1/drained", h.postDrained)
	mux.HandleFunc("POST /v1/pause", h.postPause(true))
	mux.HandleFunc("POST /v1/resume", h.postPause(false))
	return withoutBody(mux)
}

// withoutBody refuses requests with a body. No route needs one, and a body that never arrives would hold its connection.
func withoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close") // otherwise the server would read part of the body
		http.Error(w, "send no body: nothing here takes one", http.StatusRequestEntityTooLarge)
	})
}

func (h *handler) identity(w http.ResponseWriter, r *http.Request) {
	wait, err := parseWait(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	known := r.Header.Get("If-None-Match")
	now := h.hub.Get()
	body, etag, err := encode(now)
	if err == nil && wait > 0 && matches(known, etag) {
		done, ok := h.conns.wait(r)
		if !ok {
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, fmt.Sprintf("as many requests wait for a change as may, %d, and %d from elsewhere than the pod: ask again in %s s, or without wait", maxPolls, maxDistantPolls, retryAfter), http.StatusServiceUnavailable)
			return
		}
		defer done()
		// The server's write timeout begins with the request, so it must be moved. An error does not matter: it means that the writer has no deadline.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + writeTimeout))
		now = h.await(r.Context(), now, known, wait)
		body, etag, err = encode(now)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("ETag", etag)
	w.Header().Set("Cache-Control", "no-cache")
	if now.Stale {
		w.Header().Set(StaleHeader, "true")
	}
	if matches(known, etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, body)
}

// await blocks until the identity differs from the one that the client knows, until wait has passed, the client goes away, or the server shuts down. It always
// returns the newest identity.
func (h *handler) await(ctx context.Context, now Snapshot, known string, wait time.Duration) Snapshot {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-h.hub.Changed(now.Version):
		case <-timer.C:
			return h.hub.Get()
		case <-ctx.Done():
			return h.hub.Get()
		case <-h.closing:
			return h.hub.Get()
		}
		now = h.hub.Get()
		if _, etag, err := encode(now); err != nil || !matches(known, etag) {
			return now
		}
	}
}

func (h *handler) readyz(w http.ResponseWriter, _ *http.Request) {
	now := h.hub.Get()
	if !now.Assigned() {
		text := fmt.Sprintf("not ready: no id is assigned, the state is %s", now.State)
		if h.waiting != nil {
			if what := h.waiting(); what != "" {
				text += "; it waits for " + what
			}
		}
		http.Error(w, text, http.StatusServiceUnavailable)
		return
	}
	write(w, fmt.Appendf(nil, "ok: %s\n", now.Identity))
}

func (h *handler) healthz(w http.ResponseWriter, r *http.Request) {
	if h.health != nil {
		if err := h.health(r.Context()); err != nil {
			http.Error(w, "not healthy: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	write(w, []byte("ok\n"))
}

// getMetrics answers with the metrics. It does not block.
func (h *handler) getMetrics(w http.ResponseWriter, r *http.Request) {
	if h.metrics == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", meter.ContentType)
	_ = h.metrics(w) // an error means that the client has gone away
}

func parseWait(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, fmt.Errorf("wait=%q is not a duration: give a number with a unit such as wait=30s, at most %s", text, MaxWait)
	}
	return min(wait, MaxWait), nil
}

// encode returns the body and its strong ETag. The tag depends only on the body, so it survives a restart, and clients see no false change.
func encode(now Snapshot) (body []byte, etag string, err error) {
	body, err = json.Marshal(now.Identity)
	if err != nil {
		return nil, "", fmt.Errorf("identity: %w", err)
	}
	body = append(body, '\n')
	sum := sha256.Sum256(body)
	return body, `"` + hex.EncodeToString(sum[:12]) + `"`, nil
}

// matches reports whether an If-None-Match header contains the tag. RFC 9110 prescribes a weak comparison, so a prefix W/, which a proxy may add, is ignored.
// The server's tags contain no comma.
func matches(ifNoneMatch, etag string) bool {
	for tag := range strings.SplitSeq(ifNoneMatch, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}

// write writes the body of an answer. It ignores errors: they mean that the client has gone away.
func write(w http.ResponseWriter, body []byte) {
	_, _ = w.Write(body)
}
