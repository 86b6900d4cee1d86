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

const counts = `{"rates_mode":"basic","disable_stats":false}`

// source returns the source of a broker that answers with these queues and this overview.
func source(t *testing.T, body, overview string) rabbitmq.Source {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/api/queues/%2F":
		case "/api/overview":
			body = overview
		default:
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
		{"message_stats":{"publish":3},"messages":2,"messages_ready":1,"name":"orders-P1"},
		{"message_stats":{},"messages":7,"messages_ready":7,"name":"orders-P2"},
		{"name":"orders-P3"},
		{"messages":0,"name":"orders-P-3"},
		{"message_stats":{"publish":9},"messages":0,"name":"orders-P04"},
		{"message_stats":{"publish":9},"messages":0,"name":"orders-P"},
		{"message_stats":{"publish":9},"messages":0,"name":"other"}]`, counts).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// To queue 2 nothing was published since the broker counts. Of queue 3 nothing is known yet.
	if want := map[int]float64{0: 0, 1: 3, 2: 0}; !maps.Equal(r.Values, want) || !r.Totals || r.Step != time.Minute {
		t.Errorf("totals %v, want %v", r.Values, want)
	}
	if want := map[int]float64{0: 0, 1: 2, 2: 7}; !maps.Equal(r.Backlogs, want) {
		t.Errorf("backlogs %v, want %v", r.Backlogs, want)
	}
	if want := map[int]float64{1: 1, 2: 7}; !maps.Equal(r.Waiting, want) {
		t.Errorf("%v wait, want %v", r.Waiting, want)
	}
	if why := r.Why[3]; len(r.Why) != 1 || !strings.Contains(why, "does not say how many messages queue orders-P3 has") {
		t.Errorf("why %v", r.Why)
	}
}

func TestErrorsDoNotShowThePassword(t *testing.T) {
	for want, s := range map[string]rabbitmq.Source{
		"none of 0 queues": source(t, `[]`, counts),
		"not the JSON":     source(t, `{"error":"Object Not Found"}`, counts),
		"its management.rates_mode is none: set it to basic": source(t, `[{"messages":0,"name":"orders-P0"}]`, `{"rates_mode":"none","disable_stats":false}`),
		"remove management.disable_stats":                    source(t, `[{"messages":0,"name":"orders-P0"}]`, `{"rates_mode":"basic","disable_stats":true}`),
	} {
		_, err := s.Read(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s := source(t, `[]`, counts)
	s.Server.URL.Host = "127.0.0.1:1"
	if _, err := s.Read(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
