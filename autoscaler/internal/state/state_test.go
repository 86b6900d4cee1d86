package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/state"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/placement"
)

func report() loop.Report {
	return loop.Report{
		Now: time.Unix(1000, 0).UTC(),
		Seen: decide.Seen{
			Count: 3, Partitions: 4, Row: placement.Owners{0: placement.Of(0, 1), 1: placement.Of(2)}, Target: placement.Owners{0: placement.Of(0), 1: placement.Of(1, 2)},
			Absent: map[int]string{1: "its pod b is not Ready"},
			Loads:  decide.Loads{Speeds: []float64{50, 7.5, 20, 0}, Missing: placement.Of(3), At: time.Unix(996, 0).UTC()},
		},
		Decision: decide.Decision{Phase: decide.Blind, Action: decide.Nothing, Wanted: 3, Why: "no load is known of partitions 3"},
	}
}

func served(l *state.Latest) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.ServeHTTP(w, request("127.0.0.1:5", "", ""))
	return w
}

// request returns a request from an address, with a header if it has a name.
func request(from, name, value string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, state.Path, http.NoBody)
	r.RemoteAddr = from
	if name != "" {
		r.Header.Set(name, value)
	}
	return r
}

func TestTheStateIsForLoopbackAndForReadersOfTheLease(t *testing.T) {
	identity, key := state.Identity("autoscaler-0")
	if name, found := state.Holder(identity); name != "autoscaler-0" || found != key || len(key) < 26 {
		t.Errorf("%s: %q, %q", identity, name, found)
	}
	l := latest()
	l.Key = key
	l.Observe(report())
	for name, c := range map[string]struct {
		request *http.Request
		code    int
	}{
		"this pod":                     {request("127.0.0.1:5", "", ""), 200},
		"another pod":                  {request("10.0.0.7:5", "", ""), 401},
		"another pod, with a key":      {request("10.0.0.7:5", state.KeyHeader, "guessed"), 401},
		"the API server, with the key": {request("10.0.0.7:5", state.KeyHeader, key), 200},
		"a proxy in the pod":           {request("127.0.0.1:5", "L5d-Client-Id", "x"), 401},
	} {
		w := httptest.NewRecorder()
		if l.ServeHTTP(w, c.request); w.Code != c.code {
			t.Errorf("%s: %d, want %d", name, w.Code, c.code)
		}
	}
	l.Key = ""
	w := httptest.NewRecorder()
	if l.ServeHTTP(w, request("10.0.0.7:5", state.KeyHeader, "")); w.Code != http.StatusUnauthorized {
		t.Errorf("without a Lease: %d", w.Code)
	}
}

func latest() *state.Latest {
	return &state.Latest{Settings: decide.Settings{Capacity: 100, Margin: 1}, Ref: kinds.Ref{Kind: kinds.Deployment, Namespace: "demo", Name: "worker"}}
}

func TestTheTablesShowLoadsAndWhyNothingIsDecided(t *testing.T) {
	l := latest()
	l.Observe(report())
	var s state.State
	if err := json.Unmarshal(served(l).Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	for partitions, want := range map[bool]string{
		false: `Deployment/worker: 3 pods, 3 wanted, of 100 units/s each; load 77.5 units/s, measured 9s ago
blind 5s ago: no load is known of partitions 3
ID   LOAD   USED   PARTITIONS   REMARK
0    59.5   60%    0-1          
1    21     21%    2            its pod b is not Ready
2    0      0%     -            its pod has not begun to work on partitions
`,
		true: `Deployment/worker: 3 pods, 3 wanted, of 100 units/s each; load 77.5 units/s, measured 9s ago
blind 5s ago: no load is known of partitions 3
PARTITION   ID   TARGET   LOAD
0           0    0        50
1           0    1        7.5
2           1    1        20
3           -    -        ?
`,
	} {
		var out strings.Builder
		if err := s.Table(&out, time.Unix(1005, 0), partitions); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got\n%s\nwant\n%s", &out, want)
		}
	}
}

// Others write the row and the number of pods. A number takes no memory.
func TestALargeNumberTakesNoMemory(t *testing.T) {
	l, r := latest(), report()
	r.Seen.Row[1<<30], r.Seen.Count = placement.Of(3), 2_000_000_000
	l.Observe(r)
	var s state.State
	if err := json.Unmarshal(served(l).Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if last := s.IDs[len(s.IDs)-1]; last.ID != 1<<30 || last.Partitions != "3" || len(s.IDs) != 16_385 {
		t.Errorf("%d ids are shown, the last is %+v", len(s.IDs), last)
	}
}

func TestAnErrorIsShownBesideWhatWasKnownBefore(t *testing.T) {
	l := latest()
	l.Observe(loop.Report{Err: errors.New("no answer from the API server")})
	if code := served(l).Code; code != http.StatusServiceUnavailable {
		t.Errorf("before the first read of the owner: %d", code)
	}
	l.Observe(report())
	l.Observe(loop.Report{Err: errors.New("no answer from the API server")})
	if body := served(l).Body.String(); !strings.Contains(body, `"error":"no answer from the API server"`) || !strings.Contains(body, `"pods":3`) {
		t.Error(body)
	}
	l.Observe(report())
	if body := served(l).Body.String(); strings.Contains(body, `"error"`) {
		t.Errorf("an error that is over: %s", body)
	}
}

func TestWhoDoesNotLeadHasNoState(t *testing.T) {
	l := latest()
	l.Observe(report())
	l.Leads(false)
	if w := served(l); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "does not lead") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
