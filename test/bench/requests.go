package main

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// requests counts what claimants send.
type requests struct {
	mu    sync.Mutex
	start time.Time
	// c is added to by every request and answer.
	c counts
}

// counts is a copy of the numbers.
type counts struct {
	// verbs has the requests by verb: GET, LIST, WATCH, PATCH, PUT, POST and whatever else there is.
	verbs map[string]int
	total int
	// podLists are the LISTs of pods.
	podLists int
	// writes and conflicts are answers to writes: those of a Deployment that were accepted, and those of
	// anything that were refused because somebody else was first.
	writes, conflicts int
	// refused are the answers 429: the server had too much to do.
	refused int
	// sent and received are bytes on the wire, TLS included.
	sent, received int64
	// listed and written are when the first LIST of pods was sent and the first write of the Deployment was
	// accepted, since begin; zero if never.
	listed, written time.Duration
}

func newRequests() *requests { return &requests{c: counts{verbs: map[string]int{}}} }

// begin starts the clock.
func (r *requests) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = time.Now()
}

// wrap counts what passes next.
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return counter{requests: r, next: next}
}

func (r *requests) counts() counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.c
	c.verbs = maps.Clone(r.c.verbs)
	return c
}

// passed counts bytes on the wire.
func (r *requests) passed(sent, received int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.sent += int64(sent)
	r.c.received += int64(received)
}

type counter struct {
	requests *requests
	next     http.RoundTripper
}

// RoundTrip counts a request when it is sent, and its answer.
func (c counter) RoundTrip(req *http.Request) (*http.Response, error) {
	c.requests.sends(req)
	resp, err := c.next.RoundTrip(req)
	if err == nil {
		c.requests.gets(req, resp.StatusCode)
	}
	return resp, err
}

func (r *requests) sends(req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := verb(req)
	r.c.verbs[v]++
	r.c.total++
	if v == "LIST" && strings.HasSuffix(req.URL.Path, "/pods") {
		r.c.podLists++
		if r.c.listed == 0 {
			r.c.listed = time.Since(r.start)
		}
	}
}

func (r *requests) gets(req *http.Request, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case status == http.StatusTooManyRequests:
		r.c.refused++
	case req.Method == http.MethodGet:
	case status == http.StatusConflict || status == http.StatusUnprocessableEntity: // a JSON Patch whose test failed is the latter
		r.c.conflicts++
	case status == http.StatusOK && strings.Contains(req.URL.Path, "/deployments/"):
		r.c.writes++
		if r.c.written == 0 {
			r.c.written = time.Since(r.start)
		}
	}
}

// verb is the method as kubectl calls it: a GET of several objects is a LIST, or a WATCH.
func verb(req *http.Request) string {
	if req.Method != http.MethodGet {
		return req.Method
	}
	if watch := req.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		return "WATCH"
	}
	// .../namespaces/NAMESPACE/RESOURCE is a collection, one more part a single object.
	_, rest, found := strings.Cut(req.URL.Path, "/namespaces/")
	if found && strings.Count(rest, "/") == 1 {
		return "LIST"
	}
	return http.MethodGet
}
