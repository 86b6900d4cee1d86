package commands_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// How a command ends.
const (
	done = iota
	failed
	misused
)

// outcome is how a command line ended.
type outcome struct {
	code        int
	out, errors string
}

func (o outcome) String() string { return fmt.Sprintf("code %d\n%s%s", o.code, o.out, o.errors) }

// root returns the commands of a program that prints JSON for programs, and lists nothing but the kinds.
func root(server *apifake.Server, lists bool) *cobra.Command {
	p := commands.Program{
		Name: "x",
		Connect: func() (*store.Store, string, error) {
			s, err := store.New(server.Config(), clock.RealClock{})
			return s, apifake.Namespace, err
		},
		Log: func() (logr.Logger, error) { return logr.Discard(), nil },
		Formats: commands.Formats{Names: []string{"json", "of="}, Printer: func(_, template string) (commands.Printer, error) {
			if template == "{" {
				return nil, errors.New("unclosed")
			}
			return func(w io.Writer, _ bool, items ...commands.Item) error {
				return json.NewEncoder(w).Encode(items[0].Data)
			}, nil
		}},
	}
	if lists {
		p.List = func(_ context.Context, t commands.Targets, _ *commands.Output, out, _ io.Writer) error {
			_, err := fmt.Fprint(out, t.Kinds)
			return err
		}
	}
	cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
	cmd.AddCommand(commands.NewGet(p), commands.NewVerify(p), commands.NewGC(p))
	return cmd
}

// shell runs command lines.
func shell(t *testing.T, server *apifake.Server) func(line string) outcome {
	t.Helper()
	return func(line string) outcome {
		t.Helper()
		var out, errs strings.Builder
		cmd := root(server, strings.HasPrefix(line, "get"))
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs(strings.Fields(line))
		code, err := done, cmd.ExecuteContext(t.Context())
		if err != nil {
			errs.WriteString(err.Error())
			code = failed
		}
		if errors.As(err, new(cli.UsageError)) {
			code = misused
		}
		return outcome{code, out.String(), errs.String()}
	}
}

// workload is an API server with the Deployment "worker": worker-a has slot 0, and worker-gone had slot 1.
func workload(t *testing.T, replicas int64) *apifake.Server {
	t.Helper()
	server := apifake.New(t)
	server.Put(apifake.Assigned(replicas, assignment.State{Slots: assignment.Slots{0: "worker-a", 1: "worker-gone"}}))
	server.Put(apifake.Holding("worker-a", 0))
	return server
}

// says checks how a command ended, and what it printed on standard output and standard error.
func says(t *testing.T, got outcome, code int, out, errs string) {
	t.Helper()
	if got.code != code || !strings.Contains(got.out, out) || !strings.Contains(got.errors, errs) {
		t.Errorf("%s\nwant code %d, %q on standard output and %q on standard error", got, code, out, errs)
	}
}

func TestArgumentsAreReadAsKubectlReadsThem(t *testing.T) {
	for line, want := range map[string]string{
		"":                         "",
		"deploy/a":                 "Deployment/a",
		"deployments.apps/a sts/b": "Deployment/a StatefulSet/b",
		"statefulsets a b":         "StatefulSet StatefulSet/a StatefulSet/b",
		"deploy,rs,jobs":           "Deployment ReplicaSet Job",
		"pods":                     "error",
		"deploy,sts a":             "error",
		"deploy/a b":               "error",
		"deploy/":                  "error",
	} {
		got, err := commands.ParseTargets(strings.Fields(line))
		words := slices.Clone(got.Kinds)
		for _, ref := range got.Refs {
			words = append(words, ref.String())
		}
		if text := strings.Join(words, " "); (err != nil) != (want == "error") || (err == nil && text != want) {
			t.Errorf("%q: %q, %v", line, text, err)
		}
	}
}

func TestGetShowsOneWorkloadOrMany(t *testing.T) {
	server := workload(t, 1)
	other := apifake.Owner(2)
	other.SetName("other")
	server.Put(other)
	run := shell(t, server)
	for line, want := range map[string]string{
		"get deploy/worker --no-headers":              "0   worker-a      -   -   held   ",
		"get deploy/worker -o wide":                   "LEASE\n0 ",
		"get deploy/worker deploy/other":              "WORKLOAD                 ID   POD ",
		"get deploy/other deploy/worker":              "\ndeployment.apps/other    0    -             -          -      free    -\n",
		"get deploy/worker -o of=x":                   `{"owner":"Deployment/worker"`,
		"get deploy worker --partitions":              "Deployment/worker in namespace sim has no partitions: ",
		"get deploy/other deploy/worker --partitions": "Deployment/other in namespace sim has no partitions: ",
		"get":            "[]",
		"get deploy,sts": "[Deployment StatefulSet]",
	} {
		says(t, run(line), done, want, "")
	}
	for line, want := range map[string]string{
		"get deploy/worker -o of={": "unclosed", "get deploy/worker -o of=": "use table, wide, json, of=", "get deploy/worker deploy/other -w": "-w follows one workload", "get --partitions": "name the workloads",
		"verify": "name one workload", "gc deploy/a deploy/b": "name one workload", "verify deploy/worker --wait=-1s": "use 0 or more",
	} {
		says(t, run(line), misused, "", want)
	}
}

func TestGetDoesNotAskForAnAnnotationThatIsThere(t *testing.T) {
	server := workload(t, 1)
	server.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		annotations[assignment.PartitionCountKey] = "8"
		o.SetAnnotations(annotations)
	})
	got := shell(t, server)("get deploy/worker --partitions")
	says(t, got, done, "", "warning: annotation idalloc.dev/partition-count asks for 8 partitions, and no pod that has an id works on partitions. ")
	if want := "Deployment/worker in namespace sim has no partitions in force: annotation idalloc.dev/partition-count asks for 8\n"; got.out != want {
		t.Errorf("%q, want %q", got.out, want)
	}
}

func TestGetPrintsAgainAtAChangeOfWhatItShows(t *testing.T) {
	server := workload(t, 1)
	cmd := root(server, false)
	seen, out := io.Pipe()
	cmd.SetOut(out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"get", "deploy/worker", "-w", "--no-headers"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	lines := bufio.NewScanner(seen)
	for k, change := range []func(o *unstructured.Unstructured){
		nil,
		func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["replicas"] = int64(3) }, //nolint:errcheck,forcetypeassert // apifake made it
	} {
		if change != nil {
			server.Change(apifake.Deployment, apifake.Worker, change)
		}
		for id := range 2 + k {
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), strconv.Itoa(id)) {
				t.Fatalf("after %d changes, line %d is %q", k, id, lines.Text())
			}
		}
	}
	cancel()
	_ = seen.Close() // the rest of the output has no reader
	if err := <-ended; err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

func TestGCSaysWhatItFrees(t *testing.T) {
	server := workload(t, 2)
	run := shell(t, server)
	slots := func() string {
		return server.Get(apifake.Deployment, apifake.Worker).GetAnnotations()[assignment.Key]
	}
	before := slots()
	says(t, run("gc deployment/worker --dry-run"), done, "would free slot 1 of worker-gone: Deployment/worker: ", "")
	if now := slots(); now != before {
		t.Errorf("--dry-run changed the map from %s to %s", before, now)
	}
	got := run("gc deployment worker")
	if says(t, got, done, "freed slot 1 of worker-gone: Deployment/worker: ", ""); strings.Contains(got.out, "no dead holders") || strings.Contains(got.out, "restored") {
		t.Error(got)
	}
	if now := slots(); now != `{"0":"worker-a"}` {
		t.Errorf("the map is %s", now)
	}
	if got := run("gc deployment/worker"); got.code != done || got.out != "Deployment/worker: no dead holders\n" {
		t.Error(got)
	}
	server.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		annotations[assignment.Key] = "{}"
		o.SetAnnotations(annotations)
	})
	if got := run("gc deployment/worker --dry-run"); got.code != done || slots() != "{}" ||
		got.out != "Deployment/worker: the assignment was changed by another client; would restore it from the pods' receipts\n" {
		t.Error(got, slots())
	}
	if got := run("gc deployment/worker"); got.code != done || slots() != `{"0":"worker-a"}` ||
		got.out != "Deployment/worker: restored the assignment, which another client had changed, from the pods' receipts\n" {
		t.Error(got, slots())
	}
}

func TestVerifyFailsIfSomethingIsWrong(t *testing.T) {
	server := workload(t, 2)
	server.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		o.Object["spec"].(map[string]any)["strategy"] = map[string]any{ //nolint:errcheck,forcetypeassert // apifake made it
			"rollingUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(1)},
		}
	})
	server.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Impersonate-User") == "" {
			return false
		}
		apifake.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "you may not act for others")
		return true
	})
	run := shell(t, server)
	says(t, run("verify deployment/worker"), failed, "worker-gone", "Deployment/worker in namespace sim: findings: 1; see above")
	says(t, run("gc deployment/worker"), done, "freed", "")
	if got := run("verify deployment/worker --fail-on-warnings"); got.code != done || got.errors != "" || !strings.Contains(got.out, "Deployment/worker") {
		t.Error(got)
	}
	var report struct {
		OK    bool `json:"ok"`
		Count int  `json:"count"`
		Held  int  `json:"held"`
	}
	got := run("verify deployment/worker -o json")
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || got.code != done || !report.OK || report.Count != 2 || report.Held != 1 {
		t.Errorf("%v: %+v\n%s", err, report, got)
	}
	unused := apifake.Owner(1)
	unused.SetName("unused")
	server.Put(unused)
	says(t, run("verify deployment/unused"), done, "unused", "")
	says(t, run("verify deployment/unused --fail-on-warnings"), failed, "unused",
		"Deployment/unused in namespace sim: warnings: 1, and --fail-on-warnings is set; see above")
}

func TestVerifySaysThatThePoliciesDoNotLimitThePods(t *testing.T) {
	server := workload(t, 2)
	var asked []string
	server.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if user := r.Header.Get("Impersonate-User"); user != "" {
			asked = append(asked, user+" "+r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("dryRun"))
		}
		return false
	})
	run := shell(t, server)
	says(t, run("gc deployment/worker"), done, "freed", "")
	says(t, run("verify deployment/worker"), done, ": ok: ", "warning: the admission policies do not limit service account default: a dry run in its name changed a foreign label of pod worker-a")
	if want := []string{"system:serviceaccount:sim:default PATCH /api/v1/namespaces/sim/pods/worker-a All"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestVerifySaysThatThePoliciesAreMissing(t *testing.T) {
	server := workload(t, 2)
	server.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/apis/admissionregistration.k8s.io/") {
			return false
		}
		apifake.Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "none")
		return true
	})
	run := shell(t, server)
	if got := run("verify deployment/worker"); got.code != failed || strings.Contains(got.errors, "polic") {
		t.Errorf("what is wrong comes first: %s", got)
	}
	says(t, run("gc deployment/worker"), done, "freed", "")
	says(t, run("verify deployment/worker"), done, ": ok: ", "warning: the cluster has no validatingadmissionpolicies/idalloc")
}
