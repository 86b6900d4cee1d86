package main

import (
	"net/http"
	"strings"
	"sync"
)

// requests counts what claimants send.
type requests struct {
	mu sync.Mutex
	// c is added to by every request and answer.
	c counts
}

// counts is a copy of the numbers.
type counts struct {
	total int
	// writes and conflicts are answers to writes: those of a Deployment that were accepted, and those of
	// anything that were refused because another client was first.
	writes, conflicts int
	// refused are the answers 429: the server had too much to do.
	refused int
	// received are bytes on the wire, TLS included.
	received int64
}

// wrap counts what passes next.
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return counter{requests: r, next: next}
}

func (r *requests) counts() counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.c
}

// gets counts bytes on the wire.
func (r *requests) gets(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.received += int64(bytes)
}

// since returns what came after before.
func (c counts) since(before counts) counts {
	return counts{c.total - before.total, c.writes - before.writes, c.conflicts - before.conflicts, c.refused - before.refused, c.received - before.received}
}

type counter struct {
	requests *requests
	next     http.RoundTripper
}

// RoundTrip counts a request when it is sent, and its answer.
func (c counter) RoundTrip(req *http.Request) (*http.Response, error) {
	c.requests.sends()
	resp, err := c.next.RoundTrip(req)
	if err == nil {
		c.requests.answered(req, resp.StatusCode)
	}
	return resp, err
}

func (r *requests) sends() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.total++
}

func (r *requests) answered(req *http.Request, status int) {
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
	}
}
