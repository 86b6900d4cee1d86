package main

import (
	"net/http"
	"strings"
	"sync"
)

// requests counts what claimants send.
type requests struct {
	mu sync.Mutex
	// by verb: GET, LIST, WATCH, PATCH, PUT and whatever else there is.
	verbs map[string]int
	// writes and conflicts are the answers to writes of a Deployment: accepted, and refused because
	// somebody else was first.
	writes, conflicts int
}

// wrap counts what passes next.
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return counter{requests: r, next: next}
}

// counts is a copy of the numbers.
type counts struct {
	verbs             map[string]int
	total             int
	writes, conflicts int
}

func (r *requests) counts() counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := counts{verbs: map[string]int{}, writes: r.writes, conflicts: r.conflicts}
	for verb, n := range r.verbs {
		c.verbs[verb] = n
		c.total += n
	}
	return c
}

type counter struct {
	requests *requests
	next     http.RoundTripper
}

// RoundTrip counts a request when it is sent and, if it is a write of a Deployment, its answer.
func (c counter) RoundTrip(req *http.Request) (*http.Response, error) {
	c.requests.mu.Lock()
	c.requests.verbs[verb(req)]++
	c.requests.mu.Unlock()
	resp, err := c.next.RoundTrip(req)
	if err != nil || !writesOwner(req) {
		return resp, err
	}
	c.requests.mu.Lock()
	defer c.requests.mu.Unlock()
	switch resp.StatusCode {
	case http.StatusOK:
		c.requests.writes++
	case http.StatusConflict, http.StatusUnprocessableEntity: // a JSON Patch whose test failed is the latter
		c.requests.conflicts++
	}
	return resp, err
}

func writesOwner(req *http.Request) bool {
	return (req.Method == http.MethodPatch || req.Method == http.MethodPut) && strings.Contains(req.URL.Path, "/deployments/")
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
