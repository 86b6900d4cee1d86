package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestThePageIsCurrent(t *testing.T) {
	want, err := page(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	if string(is) == want {
		return
	}
	lines := strings.Split(string(is), "\n")
	for line := range strings.SplitSeq(want, "\n") {
		if !slices.Contains(lines, line) {
			t.Errorf("missing: %s", line)
		}
	}
	t.Errorf("%s is not what the code has: run go run ./hack/reference", document)
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
		"### kubectl-idalloc\n", "| `-s`, `--server string` | – |",
		"| `idalloc_id_held` | gauge |", "| `idalloc_autoscaler_decisions_total` | counter | `action`, `reason` |",
		"| `WaitingForSlot` |", "`AutoscalerScaled`", "| `idalloc.dev/receipt` |", "| `inject.idalloc.dev/service-account` |",
	} {
		if !strings.Contains(string(text), row) {
			t.Errorf("no %s", row)
		}
	}
}
