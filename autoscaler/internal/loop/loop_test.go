package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/workload"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
)

// server is an API server with one Deployment, whose pods own four partitions.
type server struct {
	mu sync.Mutex
	// owners are the pods. Without them one owns all.
	owners placement.Owners
	// answer replaces the answer to some requests. It may be nil, and returns 0 for those that it leaves alone.
	answer func(r *http.Request) int
	// patches are the bodies of all patches behind the last part of the path, and events are Events.
	patches []string
	events  []string
	version int
}

const uid = "7b1f3c52-0000-4000-8000-000000000000"

func (s *server) object() map[string]any {
	owners := s.owners
	if owners == nil {
		owners = placement.Owners{0: placement.Between(0, 3)}
	}
	row := assignment.Row{Count: 4, Strategy: placement.NameExternal, Owners: owners}
	state, pods := assignment.State{Slots: assignment.Slots{}, Row: &row}, len(owners)
	for id := range owners {
		state.Slots[id] = "worker-" + strconv.Itoa(id)
	}
	annotations := state.Encode()
	annotations[assignment.PartitionCountKey], annotations[assignment.PartitionStrategyKey] = "4", placement.NameExternal
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "worker", "namespace": "demo", "uid": uid, "resourceVersion": strconv.Itoa(s.version), "annotations": annotations},
		"spec":     map[string]any{"replicas": pods, "selector": map[string]any{"matchLabels": map[string]any{"app": "worker"}}},
		"status":   map[string]any{"replicas": pods, "readyReplicas": pods, "updatedReplicas": pods},
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.answer != nil {
		if code := s.answer(r); code != 0 {
			w.WriteHeader(code)
			reason := map[int]string{http.StatusConflict: "Conflict", http.StatusNotFound: "NotFound"}[code]
			encode(w, map[string]any{
				"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "details": map[string]any{"name": "worker", "group": "apps", "kind": "deployments"},
			})
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	switch {
	case r.Method == http.MethodPatch:
		s.patches = append(s.patches, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]+" "+string(body))
	case strings.HasSuffix(r.URL.Path, "/events"):
		s.events = append(s.events, string(body))
	}
	encode(w, s.object())
}

func encode(w io.Writer, object map[string]any) {
	if err := json.NewEncoder(w).Encode(object); err != nil {
		panic(err)
	}
}

func (s *server) set(answer func(r *http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// source has one speed for each of four partitions, or an error.
type source struct {
	clock *clocktesting.FakeClock
	speed float64
	err   error
}

func (s *source) Read(context.Context) (monitor.Reading, error) {
	return monitor.Reading{At: s.clock.Now(), Values: map[int]float64{0: s.speed, 1: s.speed, 2: s.speed, 3: s.speed}}, s.err
}

// rig is a loop with its server, its source and its log.
type rig struct {
	*loop.Loop

	t      *testing.T
	server *server
	source *source
	clock  *clocktesting.FakeClock
	log    []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	clk := clocktesting.NewFakeClock(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC))
	r := &rig{t: t, server: &server{version: 1}, source: &source{clock: clk, speed: 60}, clock: clk}
	web := httptest.NewServer(r.server)
	t.Cleanup(web.Close)
	s, err := store.New(&rest.Config{Host: web.URL, QPS: -1}, clk)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := store.ParseRef("deployment/worker", "demo")
	if err != nil {
		t.Fatal(err)
	}
	r.Loop = &loop.Loop{
		Workload: workload.Workload{Store: s, Ref: ref}, Source: r.source, Monitor: &monitor.Monitor{Window: 30 * time.Second, Most: 1e6},
		Decider: &decide.Decider{Settings: decide.Settings{
			Capacity: 100, Min: 1, Every: 30 * time.Second, AfterUp: time.Minute, AfterDown: time.Minute, MaxAge: time.Minute, Patience: time.Minute, Spare: 0.1,
		}},
		Period: 5 * time.Second, Clock: clk, Log: funcr.New(func(_, args string) { r.log = append(r.log, args) }, funcr.Options{}),
	}
	return r
}

func (r *rig) step() loop.Report {
	r.clock.Step(5 * time.Second)
	return r.Step(r.t.Context())
}

// logged returns how many lines of the log have this text.
func (r *rig) logged(text string) int {
	n := 0
	for _, line := range r.log {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func TestAWriteSaysWhatItWasDecidedOn(t *testing.T) {
	r := newRig(t)
	if report := r.step(); !report.Done || report.Decision.Action != decide.Scale {
		t.Fatalf("%+v", report)
	}
	want := `scale {"metadata":{"resourceVersion":"1","uid":"` + uid + `"},"spec":{"replicas":4}}`
	if len(r.server.patches) != 1 || r.server.patches[0] != want {
		t.Errorf("%v, want %s", r.server.patches, want)
	}
	if len(r.server.events) != 1 || !strings.Contains(r.server.events[0], "scale from 1 to 4 pods") {
		t.Errorf("Events: %v", r.server.events)
	}
}

// The server keeps one pod, whatever is written.
func TestWhoUndoesTheScalingIsNamedInAnEvent(t *testing.T) {
	r := newRig(t)
	for range 3 {
		r.step()
	}
	if len(r.server.patches) != 1 || r.logged("another client changed the number of pods from 4") == 0 {
		t.Errorf("it wrote %v and said %v", r.server.patches, r.log)
	}
	if n := len(r.server.events); n != 2 || !strings.Contains(r.server.events[1], "ScalingUndone") || !strings.Contains(r.server.events[1], "take replicas out") {
		t.Errorf("Events: %v", r.server.events)
	}
}

func TestAfterAConflictItDecidesAgain(t *testing.T) {
	r := newRig(t)
	r.server.set(func(req *http.Request) int {
		if req.Method == http.MethodPatch {
			return http.StatusConflict
		}
		return 0
	})
	if report := r.step(); !errors.Is(report.Err, store.ErrConflict) || report.Done {
		t.Fatalf("%+v", report)
	}
	r.server.set(nil)
	r.server.version = 2
	r.source.speed = 40 // the load has fallen meanwhile
	if report := r.step(); !report.Done || report.Decision.Wanted != 2 {
		t.Fatalf("%+v", report)
	}
	if r.logged("changed since it was read") > 0 {
		t.Errorf("a conflict is nothing to look at: %v", r.log)
	}
}

func TestAnAPIServerThatIsDownIsSaidOnce(t *testing.T) {
	r := newRig(t)
	r.server.set(func(*http.Request) int { return http.StatusServiceUnavailable })
	for range 3 {
		if report := r.step(); !errors.Is(report.Err, store.ErrNoAnswer) {
			t.Fatalf("%+v", report)
		}
	}
	if n := r.logged("no answer from the API server"); n != 1 {
		t.Errorf("it was said %d times: %v", n, r.log)
	}
	r.server.set(nil)
	if report := r.step(); !report.Done {
		t.Errorf("it does not scale when the server is back: %+v", report)
	}
}

// It is not known whether fewer pods would have done while the workload could not be read.
func TestTimeInWhichTheAPIServerIsDownDoesNotCount(t *testing.T) {
	acts := func(down int) int {
		r := newRig(t)
		r.server.owners, r.source.speed = placement.Owners{0: placement.Between(0, 1), 1: placement.Between(2, 3)}, 10
		for step := 1; step < 100; step++ {
			r.server.set(func(*http.Request) int {
				if step > 5 && step <= 5+down {
					return http.StatusServiceUnavailable
				}
				return 0
			})
			if r.step().Done {
				return step
			}
		}
		t.Fatalf("nothing is done: %v", r.log)
		return 0
	}
	plain := acts(0)
	if with := acts(10); with < plain+10 {
		t.Errorf("pods go after %d steps, and after %d with 10 in which the API server was down", plain, with)
	}
}

func TestASourceThatIsDownIsSaidOnceAndNothingIsDecidedOnOldData(t *testing.T) {
	r := newRig(t)
	r.source.speed = 10
	r.step()
	r.source.err = errors.New("connection refused")
	var last loop.Report
	for range 20 {
		last = r.step()
	}
	if n := r.logged("the loads cannot be read: connection refused"); n != 1 {
		t.Errorf("it was said %d times: %v", n, r.log)
	}
	if last.Decision.Phase != decide.Blind || r.logged("longer than --max-age") != 1 {
		t.Errorf("%+v\n%v", last, r.log)
	}
	r.source.err, r.source.speed = nil, -1
	if last = r.step(); last.SourceErr == nil || !strings.Contains(last.SourceErr.Error(), "the whole reading is refused") {
		t.Errorf("%+v", last)
	}
}

func TestTheCauseOfBlindnessIsSaidWhenItChangesAndWhenItIsOver(t *testing.T) {
	r := newRig(t)
	r.source.speed = 10
	r.source.err = errors.New("dial tcp 10.0.0.7:50001: connection refused")
	r.step()
	r.source.err = errors.New("dial tcp 10.0.0.7:50002: connection refused") // the same, from another port
	r.step()
	r.source.err = errors.New("401 Unauthorized")
	r.step()
	for want, n := range map[string]int{"connection refused": 1, "401 Unauthorized": 1, "no load is known": 1} {
		if got := r.logged(want); got != n {
			t.Errorf("%q was said %d times, want %d: %v", want, got, n, r.log)
		}
	}
	r.source.err = nil
	r.step()
	if r.logged("the workload and its loads can be read again") != 1 || r.logged("1 pods are enough") != 1 {
		t.Errorf("it does not say that it sees again: %v", r.log)
	}
}

func TestCausesThatChangePlacesDoNotFillTheLog(t *testing.T) {
	r := newRig(t)
	for i := range 240 { // 20 minutes
		r.source.err = errors.New([]string{"connection refused", "401 Unauthorized"}[i%2])
		r.step()
	}
	if n := r.logged("the loads cannot be read"); n < 4 || n > 42 {
		t.Errorf("%d lines in 20 minutes", n)
	}
	lines := len(r.log)
	r.source.err = errors.New("connection refused")
	for range 240 {
		r.step()
	}
	if n := len(r.log) - lines; n < 2 || n > 8 {
		t.Errorf("%d lines in 20 minutes of one cause: %v", n, r.log[lines:])
	}
}

func TestTheLoopEndsWithTheWorkload(t *testing.T) {
	r := newRig(t)
	r.server.set(func(*http.Request) int { return http.StatusNotFound })
	if err := r.Run(t.Context()); !errors.Is(err, store.ErrGone) {
		t.Errorf("%v", err)
	}
}

func TestADryRunAndOneThatKeepsPodsWriteNothing(t *testing.T) {
	for name, change := range map[string]func(*loop.Loop){
		"would act":                  func(l *loop.Loop) { l.DryRun = true },
		"published for who scales: ": func(l *loop.Loop) { l.KeepPods = true },
	} {
		r := newRig(t)
		change(r.Loop)
		for range 3 {
			if report := r.step(); report.Done || report.Decision.Wanted != 4 {
				t.Errorf("%s: %+v", name, report)
			}
		}
		if len(r.server.patches) > 0 || r.logged(name) != 1 {
			t.Errorf("%s: wrote %v, said %v", name, r.server.patches, r.log)
		}
	}
}
