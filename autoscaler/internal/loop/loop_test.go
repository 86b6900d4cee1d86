package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/workload"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/cases"
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
	clock       *clocktesting.FakeClock
	speed, last float64 // last is added in the last partition
	err         error
}

func (s *source) Read(context.Context) (monitor.Reading, error) {
	return monitor.Reading{At: s.clock.Now(), Values: map[int]float64{0: s.speed, 1: s.speed, 2: s.speed, 3: s.speed + s.last}}, s.err
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
	ref, err := kinds.ParseRef("deployment/worker", "demo")
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

// The stories in testdata are what the loop writes and says. A line is what changes, or how many steps are taken.
func TestStories(t *testing.T) {
	cases.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			r, told := newRig(t), strings.Builder{}
			for line := range strings.Lines(d.Input) {
				word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				if err := r.read(&told, word, rest); err != nil {
					d.Fatalf(t, "%s: %v", line, err)
				}
			}
			return told.String()
		}
	})
}

func (r *rig) read(told *strings.Builder, word, rest string) (err error) {
	switch word {
	case "speed":
		r.source.speed, err = strconv.ParseFloat(rest, 64)
	case "more": // in one partition
		r.source.last, err = strconv.ParseFloat(rest, 64)
	case "source": // with the error, if there is one
		if r.source.err = nil; rest != "" {
			r.source.err = errors.New(rest)
		}
	case "server": // with the method and the code of the answer, if it is none as usual
		method, text, _ := strings.Cut(rest, " ")
		code, e := strconv.Atoi(text)
		r.server.set(func(req *http.Request) int {
			if e != nil || method != "ANY" && req.Method != method {
				return 0
			}
			return code
		})
	case "version":
		r.server.version, err = strconv.Atoi(rest)
	case "dry-run":
		r.DryRun = true
	case "keep-pods":
		r.KeepPods = true
	case "steps":
		var n int
		n, err = strconv.Atoi(rest)
		r.tell(told, n)
	default:
		err = fmt.Errorf("unknown word %q", word)
	}
	return err
}

// tell takes steps, and writes down what was written and said, and what the last step came to.
func (r *rig) tell(told *strings.Builder, steps int) {
	patches, events, lines := len(r.server.patches), len(r.server.events), len(r.log)
	var last loop.Report
	for range steps {
		last = r.step()
	}
	for _, patch := range r.server.patches[patches:] {
		fmt.Fprintln(told, "write:", patch)
	}
	for _, text := range r.server.events[events:] {
		var e corev1.Event
		_ = json.Unmarshal([]byte(text), &e) // else it says nothing
		fmt.Fprintf(told, "event %s: %s\n", e.Reason, e.Message)
	}
	for _, line := range r.log[lines:] {
		fmt.Fprintln(told, "log:", line)
	}
	fmt.Fprintf(told, "%s %s, done %t, errors %v, %v\n", last.Decision.Phase, last.Decision.Action, last.Done, last.Err, last.SourceErr)
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

// An HPA may take several steps to what is published.
func TestAStepOfAnotherScalerTowardsWhatIsPublishedChangesNothing(t *testing.T) {
	r := newRig(t)
	r.KeepPods = true
	for pods := 1; pods < 4; pods++ {
		r.server.owners = placement.Owners{0: placement.Between(0, 3)}
		for id := 1; id < pods; id++ {
			r.server.owners[id] = placement.Set{}
		}
		if d := r.step().Decision; d.Wanted != 4 {
			t.Errorf("with %d pods %d are wanted: %s", pods, d.Wanted, d.Why)
		}
	}
}

func TestTheLoopEndsWithTheWorkload(t *testing.T) {
	r := newRig(t)
	r.server.set(func(*http.Request) int { return http.StatusNotFound })
	if err := r.Run(t.Context()); !errors.Is(err, request.ErrGone) {
		t.Errorf("%v", err)
	}
}
