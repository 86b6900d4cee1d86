package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const owner = "/apis/apps/v1/namespaces/ns/deployments/worker"

func TestVerbs(t *testing.T) {
	for _, c := range []struct{ method, url, want string }{
		{http.MethodGet, owner, "GET"},
		{http.MethodGet, "/apis/apps/v1/namespaces/ns/deployments?fieldSelector=x", "LIST"},
		{http.MethodGet, "/api/v1/namespaces/ns/pods?watch=true", "WATCH"},
		{http.MethodPatch, owner, "PATCH"},
		{http.MethodPut, owner, "PUT"},
	} {
		if got := verb(httptest.NewRequestWithContext(t.Context(), c.method, c.url, http.NoBody)); got != c.want {
			t.Errorf("%s %s is %s, want %s", c.method, c.url, got, c.want)
		}
	}
}

func TestOnlyWritesOfTheOwnerAreCountedAsSuch(t *testing.T) {
	count := newRequests()
	for _, c := range []struct {
		method, url string
		status      int
	}{
		{http.MethodPatch, owner, http.StatusOK},
		{http.MethodPatch, owner, http.StatusUnprocessableEntity},
		{http.MethodPut, owner, http.StatusConflict},
		{http.MethodGet, owner, http.StatusOK},
		{http.MethodPatch, "/api/v1/namespaces/ns/pods/a", http.StatusOK},
	} {
		answer := httptest.NewRecorder()
		answer.WriteHeader(c.status)
		resp, err := count.wrap(fixed{answer}).RoundTrip(httptest.NewRequestWithContext(t.Context(), c.method, c.url, http.NoBody))
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if c := count.counts(); c.writes != 1 || c.conflicts != 2 || c.total != 5 || c.verbs[http.MethodPatch] != 3 {
		t.Errorf("counted %+v", c)
	}
}

// fixed answers everything with what was recorded.
type fixed struct{ answer *httptest.ResponseRecorder }

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) { return f.answer.Result(), nil }

func TestEveryPodHasOneID(t *testing.T) {
	two := []claimed{{pod: "a", id: 0}, {pod: "b", id: 1}}
	type owner = map[string]string
	for name, c := range map[string]struct {
		all   []claimed
		owner owner
		want  string
	}{
		"all agree":                {two, owner{"0": "a", "1": "b"}, ""},
		"a write was lost":         {two, owner{"1": "b"}, "a believes"},
		"one id for two":           {[]claimed{{pod: "a", id: 1}, {pod: "a", id: 1}}, owner{"0": "b", "1": "a"}, "a believes"},
		"an id above the rest":     {[]claimed{{pod: "a", id: 0}, {pod: "b", id: 2}}, owner{"0": "a", "2": "b"}, "b believes"},
		"a stranger":               {two, owner{"0": "a", "1": "c"}, `says "c"`},
		"nothing":                  {two, nil, "a believes"},
		"a slot of nobody":         {two, owner{"0": "a", "1": "b", "2": "c"}, "names 3 ids for 2 pods"},
		"stopped before it had it": {[]claimed{{pod: "a", id: 0}, {pod: "b", stopped: true}}, owner{"0": "a"}, ""},
		"stopped before it knew":   {[]claimed{{pod: "a", id: 0}, {pod: "b", stopped: true}}, owner{"0": "a", "1": "b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := verify(c.all, c.owner)
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestPercentiles(t *testing.T) {
	times := make([]time.Duration, 0, 100)
	for i := range 100 {
		times = append(times, time.Duration(i+1))
	}
	for p, want := range map[int]time.Duration{50: 50, 99: 99, 100: 100} {
		if got := percentile(times, p); got != want {
			t.Errorf("p%d is %d", p, got)
		}
	}
	if got := percentile(times[:1], 99); got != 1 {
		t.Errorf("p99 of one is %d", got)
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("p50 of none is %d", got)
	}
}
