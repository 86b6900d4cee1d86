package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/cli"
)

const manifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec: {template: {metadata: {labels: {idalloc.dev/inject: "true"}}, spec: {containers: [{name: main}]}}}
`

// call runs the command as a shell does.
func call(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), append([]string{"inject"}, args...), strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestInjectReadsAFileOrStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	code, byFile, _ := call(t, "", "-f", file, "--image=example.com/idalloc:v1")
	if code != cli.ExitDone || !strings.Contains(byFile, "example.com/idalloc:v1") {
		t.Errorf("exit code %d:\n%s", code, byFile)
	}
	if _, byInput, _ := call(t, manifest, "-f", "-", "--image=example.com/idalloc:v1"); byInput != byFile {
		t.Errorf("by standard input:\n%s\nby file:\n%s", byInput, byFile)
	}
}

func TestInjectSaysThatNothingAsks(t *testing.T) {
	other := strings.Replace(manifest, "idalloc.dev/inject", "app", 1)
	code, stdout, stderr := call(t, other, "-f", "-")
	if code != cli.ExitDone || stdout != other || !strings.Contains(stderr, "no workload asks for an id") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if _, stdout, stderr = call(t, other, "-f", "-", "--all"); stdout == other || !strings.HasPrefix(stderr, "warning: Deployment/worker: its next rolling update would wait") {
		t.Errorf("--all: %s%s", stdout, stderr)
	}
}

// A label of another way would make other pods than those that are asked for.
func TestInjectNamesTheLabelOfTheWay(t *testing.T) {
	other := strings.Replace(manifest, "idalloc.dev/inject", "app", 1)
	for by, want := range map[string]string{
		"":           `the label idalloc.dev/assign: controller or idalloc.dev/inject: "true", or use --all`,
		"sidecar":    `the label idalloc.dev/inject: "true", or use --all`,
		"agent":      `the label idalloc.dev/inject: "true", to which this command adds idalloc.dev/assign: agent, or use --all`,
		"controller": "the label idalloc.dev/assign: controller, or use --all",
	} {
		if _, _, stderr := call(t, other, "-f", "-", "--by="+by); !strings.HasSuffix(stderr, want+"\n") {
			t.Errorf("--by=%s: %s", by, stderr)
		}
	}
}

func TestExitCodesOfInject(t *testing.T) {
	for _, c := range []struct {
		args     []string
		code     int
		sentence string
	}{
		{nil, cli.ExitUsage, "name a file with -f"},
		{[]string{"-f", "-", "more"}, cli.ExitUsage, "takes no arguments"},
		{[]string{"-f", "-", "--by=peer"}, cli.ExitUsage, `--by is "peer": use sidecar, agent or controller`},
		{[]string{"--flie=x"}, cli.ExitUsage, "see kubectl idalloc inject --help"},
		{[]string{"-f", "/does/not/exist"}, cli.ExitError, "no such file"},
		{[]string{"-f", "-"}, cli.ExitError, "DaemonSet/worker: idalloc gives ids to the pods of"},
	} {
		code, stdout, stderr := call(t, strings.Replace(manifest, "Deployment", "DaemonSet", 1), c.args...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, "error: ") || !strings.Contains(stderr, c.sentence) {
			t.Errorf("%q: exit code %d: %s%s", c.args, code, stdout, stderr)
		}
	}
}
