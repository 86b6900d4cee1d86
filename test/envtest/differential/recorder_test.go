package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// contextKey is that of a value that tells the recorder what a request is for.
type contextKey int

const (
	// quietly marks a request that is not compared.
	quietly contextKey = iota
	// watchName names the watch that a request belongs to.
	watchName
)

// recorder notes every request of a side and what it was answered.
type recorder struct {
	s    *side
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Answers are asked for in JSON whatever the client prefers, because
// the simulated server has nothing else.
func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	var accepted []string
	for form := range strings.SplitSeq(req.Header.Get("Accept"), ",") {
		if strings.HasPrefix(form, "application/json") {
			accepted = append(accepted, form)
		}
	}
	req.Header.Set("Accept", strings.Join(accepted, ","))
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	ctx := req.Context()
	if w, ok := ctx.Value(watchName).(*watched); ok && isWatch(req.URL.Query()) {
		w.opened(resp.StatusCode)
		resp.Body = &tee{ReadCloser: resp.Body, w: w}
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if w, ok := ctx.Value(watchName).(*watched); ok {
		w.listed(resp.StatusCode)
		return resp, nil
	}
	if ctx.Value(quietly) == nil {
		r.s.answered(req, resp.StatusCode, body)
	}
	return resp, nil
}

func isWatch(query url.Values) bool { return query.Get("watch") == "true" || query.Get("watch") == "1" }

// resourceOf returns the resource and the rest of a request's path.
func resourceOf(path string) (resource, rest string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		if part == "namespaces" && i+2 < len(parts) {
			return parts[i+2], strings.Join(parts[i+3:], "/")
		}
	}
	return "", path
}

// answered notes an answer.
func (s *side) answered(req *http.Request, code int, body []byte) {
	resource, rest := resourceOf(req.URL.Path)
	s.mu.Lock()
	var views []string
	if req.Method != http.MethodDelete || code >= http.StatusBadRequest { // idalloc does not read what was deleted
		views = s.views(resource, rest, code, body)
	}
	s.mu.Unlock()
	s.notef("%s %s/%s%s -> %d %s", req.Method, resource, rest, asked(req.URL.Query()), code, strings.Join(views, "\n      "))
}

// asked is a query without what differs between the sides.
func asked(query url.Values) string {
	for _, field := range []string{"resourceVersion", "continue"} {
		if v := query.Get(field); v != "" && v != "0" && v != "1" {
			query.Set(field, "N")
		}
	}
	query.Del("timeoutSeconds")
	text, err := url.QueryUnescape(query.Encode())
	if err != nil || text == "" {
		return ""
	}
	return "?" + text
}

// views returns what is compared of a body: the reason of a refusal, or the objects.
func (s *side) views(resource, rest string, code int, body []byte) []string {
	var o object
	if err := utiljson.Unmarshal(body, &o); err != nil {
		return []string{"not JSON: " + err.Error()}
	}
	if code >= http.StatusBadRequest {
		reason, _ := o["reason"].(string)
		return []string{reason}
	}
	if kind, _ := o["kind"].(string); strings.HasSuffix(kind, "List") {
		items, _ := o["items"].([]any) // null if there are none
		out := make([]string, 0, len(items))
		for _, item := range items {
			if o, ok := item.(object); ok {
				s.seen(resource, o)
			}
		}
		for _, item := range items {
			o, _ := item.(object)
			out = append(out, s.view(resource, o, true))
		}
		return out
	}
	if resource == "events" || strings.HasSuffix(rest, "/scale") || o["kind"] == "Status" {
		return nil
	}
	s.seen(resource, o)
	return []string{s.view(resource, o, false)}
}

// watched is one watch, which may be several requests of idalloc's own stream.
type watched struct {
	s        *side
	resource string
	// target is the object by whose changes it is known how far the watch is.
	target string

	mu     sync.Mutex
	part   []byte // of a line
	events []event
	ended  bool
	heard  chan struct{}
}

type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (w *watched) add(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
	w.tell()
}

func (w *watched) tell() {
	select {
	case w.heard <- struct{}{}:
	default:
	}
}

func (w *watched) opened(code int) { w.add(event{Type: "opened " + http.StatusText(code)}) }
func (w *watched) listed(code int) { w.add(event{Type: "listed " + http.StatusText(code)}) }

func (w *watched) read(p []byte) {
	w.mu.Lock()
	w.part = append(w.part, p...)
	var lines [][]byte
	for {
		i := bytes.IndexByte(w.part, '\n')
		if i < 0 {
			break
		}
		lines = append(lines, bytes.Clone(w.part[:i]))
		w.part = w.part[i+1:]
	}
	w.mu.Unlock()
	for _, line := range lines {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			e.Type = "not JSON: " + err.Error()
		}
		w.add(e)
	}
}

func (w *watched) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.tell()
}

// tee shows a watch's bytes to its watched as they are read.
type tee struct {
	io.ReadCloser
	w *watched
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.w.read(p[:n])
	return n, err
}

// until blocks until the watch showed an event that holds the text, or has ended, or ctx has.
func (w *watched) until(ctx context.Context, text string) error {
	for {
		w.mu.Lock()
		done := w.ended
		for _, e := range w.events {
			done = done || bytes.Contains(e.Object, []byte(text))
		}
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-w.heard:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// took returns the events since the last call.
func (w *watched) took() []event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.events
	w.events = nil
	return out
}
