package main

import (
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/test/apifake"
)

// called runs the plugin as a shell does.
func called(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/does/not/exist")
	var out, errs strings.Builder
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for line, says := range map[string]string{
		"frobnicate":                       "unknown command",
		"get worker":                       "worker is not KIND/NAME",
		"check -o xml":                     "use table, wide, json, yaml, name",
		"get deploy/a -A":                  "name none then",
		"enable":                           "name one workload",
		"release":                          "name one workload",
		"release deploy/a --dry-run=on":    "use none, client or server",
		"get deploy/a -o xml":              "use table, wide, json, yaml, name",
		"get deploy/a -o jsonpath={":       "unclosed action",
		"explain":                          "name one pod",
		"explain deploy/a":                 "name one pod",
		"top --interval=1ms":               "500ms or more",
		"enable deploy/a --dry-run=always": "use none, client or server",
		"version x":                        "takes no arguments",
		"get --no-such-flag":               "see kubectl idalloc get --help",
	} {
		if code, stdout, stderr := called(t, strings.Fields(line)...); code != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d: %s%s", line, code, stdout, stderr)
		}
	}
}

func TestHelpIsShortAndSpeaksOfThePlugin(t *testing.T) {
	for _, command := range []string{"get", "verify", "gc", "explain", "top", "enable", "release", "inject"} {
		code, help, _ := called(t, command, "--help")
		if code != cli.ExitDone || strings.Contains(help, "--certificate-authority") || !strings.Contains(help, "kubectl idalloc options") {
			t.Errorf("%s --help:\n%s", command, help)
		}
		if !strings.Contains(help, "kubectl idalloc "+command) || strings.Contains(help, "kubectl-idalloc") {
			t.Errorf("%s --help does not say how to call it:\n%s", command, help)
		}
	}
	if _, options, _ := called(t, "options"); !strings.Contains(options, "--certificate-authority") || !strings.Contains(options, "--namespace") {
		t.Errorf("options:\n%s", options)
	}
}

func TestVersion(t *testing.T) {
	if code, stdout, _ := called(t, "version", "-o", "jsonpath={.version}"); code != cli.ExitDone || stdout != "dev" {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

func TestCompletionOfKinds(t *testing.T) {
	_, stdout, _ := called(t, "__complete", "get", "")
	for _, kind := range []string{"deployment/", "statefulset/", "replicaset/", "job/"} {
		if !strings.Contains(stdout, kind+"\n") {
			t.Errorf("%s is missing: %s", kind, stdout)
		}
	}
	if _, stdout, _ = called(t, "__complete", "get", "-o", ""); !strings.Contains(stdout, "jsonpath=\n") {
		t.Errorf("formats: %s", stdout)
	}
}

// A terminal would obey what a container says of itself.
func TestWhatAContainerSaysHasNoEffectOnATerminal(t *testing.T) {
	api := apifake.New(t)
	pod := apifake.Pod("a")
	pod.SetOwnerReferences(apifake.ControlledBy("StatefulSet", "s", "s"))
	said := map[string]any{"reason": "Error", "message": "\x1b[2J\x1b]0;all is well\a"}
	pod.Object["status"] = map[string]any{"phase": "Pending", "containerStatuses": []any{map[string]any{"name": "main", "state": map[string]any{"waiting": said}}}}
	api.Put(pod)
	set := apifake.Owner(1)
	set.SetKind("StatefulSet")
	set.SetName("s")
	set.SetUID("s")
	api.Put(set)
	for _, format := range []string{"--output=table", "--output=json", "--output=jsonpath={.reasons[0]}"} {
		code, stdout, stderr := called(t, "explain", "a", "-n", apifake.Namespace, "-s", api.Config().Host, format)
		if code != cli.ExitDone || !strings.Contains(stdout, "all is well") || strings.ContainsAny(stdout, "\x1b\a") {
			t.Errorf("%s: exit code %d: %q %q", format, code, stdout, stderr)
		}
	}
}
