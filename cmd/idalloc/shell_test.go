package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/test/apifake"
)

// outcome is how a command line ended.
type outcome struct {
	code        int
	out, errors string
}

func (o outcome) String() string { return fmt.Sprintf("exit code %d\n%s%s", o.code, o.out, o.errors) }

// shell runs command lines as a person at a shell does, outside of a pod.
func shell(t *testing.T, server *apifake.Server) func(line string, more ...string) outcome {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	return func(line string, more ...string) outcome {
		t.Helper()
		var out, errs strings.Builder
		root := newRoot()
		root.SetOut(&out)
		root.SetErr(&errs)
		root.SetArgs(append([]string{"--server=" + server.Config().Host, "--namespace=" + apifake.Namespace}, append(strings.Fields(line), more...)...))
		err := root.ExecuteContext(t.Context())
		if err != nil {
			errs.WriteString(err.Error())
		}
		return outcome{exitCode(err), out.String(), errs.String()}
	}
}

// workload is an API server with the Deployment "worker": worker-a has slot 0, and worker-gone had slot 1.
func workload(t *testing.T, replicas int64) *apifake.Server {
	t.Helper()
	server := apifake.New(t)
	server.Put(apifake.Assigned(replicas, assignment.State{Slots: assignment.Slots{0: "worker-a", 1: "worker-gone"}}))
	holder := apifake.Holding("worker-a", 0)
	holder.SetCreationTimestamp(metav1.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)) // by another clock, so that get shows the age 0s
	server.Put(holder)
	return server
}

// says checks an exit code, and what a command printed on standard output and standard error.
func says(t *testing.T, got outcome, code int, out, errs string) {
	t.Helper()
	if got.code != code || !strings.Contains(got.out, out) || !strings.Contains(got.errors, errs) {
		t.Errorf("%s\nwant exit code %d, %q on standard output and %q on standard error", got, code, out, errs)
	}
}

func TestRequestsThatAreForbidden(t *testing.T) {
	server := workload(t, 1)
	server.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		apifake.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, `User "me" cannot get resource "deployments"`)
		return true
	})
	run := shell(t, server)
	for _, command := range []string{"get", "gc", "verify"} {
		says(t, run(command+" deployment/worker"), cli.ExitForbidden, "", `get deployments`)
	}
}

func TestInstallSaysWhatTheDirectoryNeeds(t *testing.T) {
	run := shell(t, apifake.New(t))
	dir := t.TempDir()
	says(t, run("install "+dir+"/none"), cli.ExitError, "", "cannot install into "+dir+"/none")
	says(t, run("install "+dir), cli.ExitDone, "", "")
	if got := content(t, dir); len(got) != 1 || len(got["idalloc"]) == 0 {
		t.Errorf("the directory has %d files", len(got))
	}
}

func TestVersionAndHelp(t *testing.T) {
	run := shell(t, apifake.New(t))
	says(t, run("version"), cli.ExitDone, "idalloc dev go", "")
	says(t, run("version -o json"), cli.ExitDone, `"version": "dev"`, "")
	t.Setenv("IDALLOC_VERSION", "1.0") // of an image, perhaps
	says(t, run("--version"), cli.ExitDone, "idalloc version dev\n", "")
	says(t, run("options"), cli.ExitDone, "--certificate-authority", "")
	says(t, run(""), cli.ExitDone, "Exit codes: ", "")
	help := run("watch --help")
	for _, command := range []string{"run", "get"} { // not by the rule
		if text := run(command + " --help").out; strings.Count(text, "[IDALLOC_WITH_PARTITIONS]") != 1 {
			t.Errorf("the help of %s does not name the variable of --partitions: %s", command, text)
		}
	}
	if strings.Contains(help.out, "IDALLOC_HELP") || strings.Contains(help.out, "--certificate-authority") || !strings.Contains(help.out, "idalloc options") {
		t.Errorf("the help has flags that are not the command's: %s", help.out)
	}
}

// full is a device without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left on device")

// A script that gets half of the output has to know.
func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, line := range []string{
		"get deployment/worker", "get deployment/worker -o wide", "get deployment/worker -o json", "get deployment/worker -o yaml",
		"gc deployment/worker --dry-run", "gc deployment/clean", "gc deployment/foreign --dry-run", "verify deployment/worker", "verify deployment/worker -o json", "version",
	} {
		server := workload(t, 2)
		for name, change := range map[string]func(o *unstructured.Unstructured){
			"clean":   func(*unstructured.Unstructured) {},
			"foreign": func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{assignment.Key: "?"}) },
		} {
			other := apifake.Assigned(0, assignment.State{})
			other.SetName(name)
			change(other)
			server.Put(other)
		}
		shell(t, server)
		root := newRoot()
		root.SetOut(full{})
		root.SetErr(io.Discard)
		root.SetArgs(append(strings.Fields(line), "--server="+server.Config().Host, "--namespace="+apifake.Namespace))
		if err := root.ExecuteContext(t.Context()); !errors.Is(err, errFull) {
			t.Errorf("idalloc %s: %v", line, err)
		}
	}
}

// What idalloc says beside the table is lost as well if it cannot be read.
func TestRemarksThatCannotBeWritten(t *testing.T) {
	server := workload(t, 2)
	server.Put(apifake.Pod("worker-b"))
	shell(t, server)
	root := newRoot()
	root.SetOut(io.Discard)
	root.SetErr(full{})
	root.SetArgs([]string{"get", "deployment/worker", "--server=" + server.Config().Host, "--namespace=" + apifake.Namespace})
	if err := root.ExecuteContext(t.Context()); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

// A container that cannot get an id ends with an error, and not as if it had one.
func TestAPodThatMayNotStart(t *testing.T) {
	run := shell(t, apifake.New(t))
	dir, pod := t.TempDir(), " --pod-name=worker-x --pod-namespace=sim --pod-uid="+rand.Text()
	for _, line := range []string{"init --dir=" + dir, "watch --http-address= --dir=" + dir, "run --http-address= -- /bin/true"} {
		command, rest, _ := strings.Cut(line, " ")
		says(t, run(command+pod+" "+rest), cli.ExitError, "", "worker-x")
	}
	for _, line := range []string{"watch --dir=" + dir, "run /bin/true"} {
		command, rest, _ := strings.Cut(line, " ")
		says(t, run(command+pod+" --http-address=127.0.0.1:none "+rest), cli.ExitError, "", "127.0.0.1:none")
	}
}

// The shell completes no file names where idalloc wants a workload.
func TestCompletionNamesNoFiles(t *testing.T) {
	run := shell(t, apifake.New(t))
	says(t, run("__complete get", ""), cli.ExitDone, ":4\n", "")
}

// standardError returns what f writes there.
func standardError(t *testing.T, f func()) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = file
	f()
	os.Stderr = before
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAnErrorIsOneSentence(t *testing.T) {
	code := cli.ExitDone
	text := standardError(t, func() { code = run(t.Context(), []string{"frobnicate"}) })
	if want := "error: unknown command \"frobnicate\": see idalloc --help\n"; code != cli.ExitUsage || text != want {
		t.Errorf("exit code %d, and on standard error %q", code, text)
	}
}

// A server that does not answer is not a workload without a free slot.
func TestInitSaysThatNoServerAnswers(t *testing.T) {
	t.Cleanup(klog.ClearLogger)
	t.Setenv("POD_NAME", "worker-0")
	t.Setenv("POD_NAMESPACE", "demo")
	closed := httptest.NewServer(nil)
	closed.Close()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"clusters": [{"name": "c", "cluster": {"server": "` + closed.URL + `"}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code := cli.ExitDone
	said := standardError(t, func() {
		code = run(t.Context(), []string{"init", "--kubeconfig=" + config, "--timeout=1ms", "--dir=" + t.TempDir()})
	})
	_, sentence, _ := strings.Cut(said, "error: ")
	if code != cli.ExitError || strings.Contains(sentence, "no slot") || strings.Contains(said, "idalloc:") || !strings.Contains(sentence, "no answer from the API server") {
		t.Errorf("exit code %d, and it says %q", code, said)
	}
}

// What reads logs by machine finds times and durations in them, and what client-go says.
func TestTheLog(t *testing.T) {
	t.Cleanup(klog.ClearLogger)
	logs := func(format string, verbosity int) string {
		return standardError(t, func() {
			log, err := (&cli.Log{Format: format, Verbosity: verbosity}).Logger()
			if err != nil {
				t.Fatal(err)
			}
			log.Info("claimed", "after", 1500*time.Millisecond)
			log.V(1).Info("a step")
			klog.Background().Info("by client-go")
		})
	}
	var lines []map[string]any
	for line := range strings.Lines(logs("json", 0)) {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, fields)
	}
	if len(lines) != 2 || lines[0]["msg"] != "claimed" || lines[0]["after"] != "1.5s" || lines[1]["msg"] != "by client-go" || lines[1]["logger"] != "client-go" {
		t.Fatal(lines)
	}
	if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(lines[0]["time"])); err != nil || time.Since(at) > time.Hour {
		t.Errorf("%v: %v", lines[0], err)
	}
	if text := logs("console", 1); strings.HasPrefix(text, "{") || !strings.Contains(text, "a step") {
		t.Errorf("for people: %s", text)
	}
}

// The README documents the exit codes.
func TestExitCodes(t *testing.T) {
	forbidden := &request.ForbiddenError{Verb: "get"}
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("boom"), 1},
		{cli.Usagef("boom"), 2},
		{fmt.Errorf("%w: %w", allocator.ErrNoSlot, agent.ErrTimeout), 3},
		{allocator.ErrNoSlot, 1},
		{agent.ErrTimeout, 1},
		{fmt.Errorf("%w: %w: %w", allocator.ErrNoSlot, agent.ErrTimeout, forbidden), 4},
		{forbidden, 4},
		{fmt.Errorf("watch: %w", forbidden), 4},
		{statusError{code: 137}, 137},
		{statusError{code: 127, err: cli.Usagef("boom")}, 127},
	} {
		if got := exitCode(tc.err); got != tc.want {
			t.Errorf("%v: exit code %d, want %d", tc.err, got, tc.want)
		}
	}
}
