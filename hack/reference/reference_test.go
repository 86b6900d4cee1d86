package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestThePagesAreCurrent(t *testing.T) {
	for path, text := range pages() {
		want, err := text(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		is, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // a page of the project
		if err != nil {
			t.Fatal(err)
		}
		if string(is) == want {
			continue
		}
		lines := strings.Split(string(is), "\n")
		for line := range strings.SplitSeq(want, "\n") {
			if !slices.Contains(lines, line) {
				t.Errorf("missing: %s", line)
			}
		}
		t.Errorf("%s is not what the code has: run go run ./hack/reference", path)
	}
}

func TestAMessageIsExplainedAboveItsLine(t *testing.T) {
	for code, want := range map[string]string{
		"// Log: it works, and\n// goes on.\n// Do: nothing.\nlog.Info(\"works\")": "works/it works, and goes on/nothing",
		"log.V(1).Info(\"details\")":                                   "",
		"log.Error(err, \"fails\")":                                    `error: nothing explains "fails"`,
		"// Log: it works.\n\nlog.Info(\"works\")":                     "error: the comment stands above a line without a message",
		"// Error: exit code 1.\nfmt.Errorf(\"pod %s: %w\", pod, err)": "pod …: …/exit code 1/",
	} {
		dir := t.TempDir()
		for _, name := range []string{"cmd", "internal", "pkg", "controller/cmd", "controller/internal"} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "pkg", "a.go"), []byte("package a\n\nfunc f() {\n"+code+"\n}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var got string
		switch said, err := explained(dir); {
		case err != nil:
			got = "error: " + err.Error()
		default:
			for _, m := range slices.Concat(said[logMessage], said[errorMessage]) {
				got = strings.Join([]string{m.text, m.means, m.do}, "/")
			}
		}
		if !strings.HasPrefix(got, "error: ") && got != want || strings.HasPrefix(got, "error: ") && !strings.Contains(got, strings.TrimPrefix(want, "error: ")) {
			t.Errorf("%s\ngives %q, want %q", code, got, want)
		}
	}
}

func TestAFlagOfAHelpTextBecomesARow(t *testing.T) {
	h := parse(strings.Join([]string{
		"Does things.", "", "Available Commands:", "  one         Do one", "", "Flags:",
		"  -n, --name string   whose; --all is another [X_NAME, from elsewhere, or X_OTHER] (default \"a b\")",
		"      --dry           do nothing [X_DRY]",
		"  -h, --help          help", "", "Global Flags:", "      --more   not this one", "", `Use "x --help"`,
	}, "\n"))
	want := [][]string{
		{"`-n`, `--name string`", "`X_NAME`, `X_OTHER`", "`a b`", "whose; --all is another"},
		{"`--dry`", "`X_DRY`", "", "do nothing"},
	}
	if !slices.Equal(h.commands, []string{"one"}) || !slices.EqualFunc(h.flags, want, slices.Equal) {
		t.Errorf("%q", h)
	}
}

func TestWhatTheCodeHasIsOnThePage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| `--fence-after duration` | `IDALLOC_FENCE_AFTER` |", "| `--pod-uid string` | `POD_UID`, `IDALLOC_POD_UID` |",
		"### kubectl-idalloc get\n", "| `-A`, `--all-namespaces` | – |",
		"| `idalloc_id_held` | gauge |", "| `idalloc_autoscaler_decisions_total` | counter | `action`, `reason` |",
		"| `idalloc.dev/receipt` |", "| `inject.idalloc.dev/service-account` |",
	} {
		if !strings.Contains(string(text), row) {
			t.Errorf("no %s", row)
		}
	}
}
