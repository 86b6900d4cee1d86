package rabbitmq_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/source/rabbitmq"
	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
)

func source(t *testing.T, body string) rabbitmq.Source {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/api/queues/%2F" {
			t.Errorf("asked for %s", r.URL.EscapedPath())
		}
		if user, password, _ := r.BasicAuth(); user != "guest" || password != "secret" {
			t.Errorf("authorized as %q with %q", user, password)
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	address, err := web.Parse(strings.Replace(server.URL, "http://", "http://guest:secret@", 1))
	if err != nil {
		t.Fatal(err)
	}
	return rabbitmq.Source{Server: web.Server{URL: address}, VHost: "/", Prefix: "orders-P", Interval: time.Minute, Now: time.Now}
}

func TestQueuesAreRead(t *testing.T) {
	r, err := source(t, `[
		{"messages":0,"name":"orders-P0"},
		{"message_stats":{"publish":3},"messages":2,"name":"orders-P1"},
		{"message_stats":{},"messages":7,"name":"orders-P2"},
		{"name":"orders-P3"},
		{"message_stats":{"publish":9},"messages":0,"name":"orders-P04"},
		{"message_stats":{"publish":9},"messages":0,"name":"orders-P"},
		{"message_stats":{"publish":9},"messages":0,"name":"other"}]`).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Queue 2 has messages, and nothing says how many were published. Of queue 3 nothing is known yet.
	if want := map[int]float64{0: 0, 1: 3}; !maps.Equal(r.Values, want) || !r.Totals || r.Step != time.Minute {
		t.Errorf("totals %v, want %v", r.Values, want)
	}
	if want := map[int]float64{0: 0, 1: 2, 2: 7}; !maps.Equal(r.Backlogs, want) {
		t.Errorf("backlogs %v, want %v", r.Backlogs, want)
	}
}

func TestErrorsDoNotShowThePassword(t *testing.T) {
	for want, s := range map[string]rabbitmq.Source{
		"none of 0 queues": source(t, `[]`),
		"not the JSON":     source(t, `{"error":"Object Not Found"}`),
	} {
		_, err := s.Read(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s := source(t, `[]`)
	s.Server.URL.Host = "127.0.0.1:1"
	if _, err := s.Read(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
