package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/state"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/placement"
)

// leading is an autoscaler that leads.
func leading() *state.Latest {
	l := &state.Latest{Settings: decide.Settings{Capacity: 100}, Key: "key", Ref: kinds.Ref{Kind: kinds.Deployment, Namespace: "demo", Name: "worker"}}
	l.Observe(loop.Report{
		Now:      time.Now(),
		Seen:     decide.Seen{Count: 1, Partitions: 2, Row: placement.Owners{0: placement.Of(0, 1)}, Loads: decide.Loads{Speeds: []float64{30, 60}, At: time.Now()}},
		Decision: decide.Decision{Phase: decide.Waiting, Wanted: 1, Why: "in 30s at the earliest: more"},
	})
	return l
}

// remote passes requests on as the API server's proxy does, which is on another machine.
func remote(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "10.0.0.7:1234"
		to.ServeHTTP(w, r)
	})
}

// cluster is an API server. Its Lease names this holder, if there is one, and its pod autoscaler-0 answers at port 8080.
func cluster(t *testing.T, holder string) (kubeconfig string) {
	t.Helper()
	mux := http.NewServeMux()
	missing := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
	}
	mux.HandleFunc("/", missing)
	if holder != "no Lease" {
		mux.HandleFunc("GET /apis/coordination.k8s.io/v1/namespaces/demo/leases/idalloc-autoscaler-deployment.worker", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"x"},"spec":{"holderIdentity":"` + holder + `"}}`))
		})
	}
	mux.Handle("GET /api/v1/namespaces/demo/pods/autoscaler-0:8080/proxy/state", remote(leading()))
	mux.Handle("GET /api/v1/namespaces/demo/pods/young:8080/proxy/state", remote(&state.Latest{Key: "key"}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: \"" + server.URL + "\"}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGetAsksTheLeaderThroughTheAPIServer(t *testing.T) {
	kubeconfig := cluster(t, "autoscaler-0_key")
	out, err := called(t, "get", "deployment/worker", "-n=demo", "--kubeconfig="+kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Deployment/worker: 1 pods, 1 wanted, of 100 units/s each; load 90 units/s", "in 30s at the earliest: more", "0    90     90%    0-1"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not there:\n%s", want, out)
		}
	}
	out, err = called(t, "get", "deployment/worker", "-n=demo", "--kubeconfig="+kubeconfig, "-o=json")
	if err != nil {
		t.Fatal(err)
	}
	var s state.State
	if err := json.Unmarshal([]byte(out), &s); err != nil || len(s.Partitions) != 2 || *s.Partitions[1].Load != 60 || s.Namespace != "demo" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestGetAsksAnAddress(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET "+state.Path, leading())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	out, err := called(t, "get", "--url="+server.URL, "--partitions")
	if err != nil || !strings.Contains(out, "1           0    -        60") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A terminal would obey what a server says.
func TestWhatAServerSaysHasNoEffectOnATerminal(t *testing.T) {
	const said = "\x1b[2Jall is well\u202e"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+state.Path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(state.State{Why: said}) })
	mux.HandleFunc("/apis/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusConflict, Message: said}
		status.Kind, status.APIVersion = "Status", "v1"
		_ = json.NewEncoder(w).Encode(status)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for line, want := range map[string]int{"get --url=": cli.ExitDone, "get --output=json --url=": cli.ExitDone, "get deployment/worker --server=": cli.ExitError} {
		var out, errs strings.Builder
		code := run(t.Context(), strings.Fields(line+server.URL), &out, &errs)
		if text := out.String() + errs.String(); code != want || !strings.Contains(text, "all is well") || strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s: exit code %d: %q", line, code, text)
		}
	}
}

func TestGetSaysWhyThereIsNothingToShow(t *testing.T) {
	for holder, want := range map[string]string{ //nolint:gosec // an address that must not be asked
		"no Lease":           "has led in namespace demo: Lease idalloc-autoscaler-deployment.worker does not exist",
		"":                   "no autoscaler of Deployment/worker leads now",
		"my-laptop":          "the leader calls itself my-laptop, which is no pod of namespace demo",
		"../../secrets/x_k":  `is "../../secrets/x", which is not the name of a pod`,
		"a:8080/proxy?_key":  "is not the name of a pod",
		"autoscaler-0_other": "only requests from this pod's loopback",
		"young_key":          "has not read the workload yet",
	} {
		_, err := called(t, "get", "deployment/worker", "-n=demo", "--kubeconfig="+cluster(t, holder))
		if err == nil || !strings.Contains(err.Error(), want) || cli.ExitCode(err) != cli.ExitError {
			t.Errorf("%q: %v, want %q", holder, err, want)
		}
	}
}
