package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	inspection "github.com/idalloc/idalloc/internal/inspect"
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

// Explain and verify find Events by their reasons. A reason that was renamed would match nothing.
func TestTheEventsThatExplainAndVerifyReadAreWritten(t *testing.T) {
	said, err := explained(root)
	if err != nil {
		t.Fatal(err)
	}
	means := map[string]string{}
	for _, m := range said[eventMessage] {
		means[m.text] = strings.TrimPrefix(m.means, "Normal: ")
	}
	onPods, onWorkloads := inspection.Reasons()
	for _, reason := range append(onPods, onWorkloads...) {
		if means[reason] == "" {
			t.Errorf("no code writes the Event %s, which package inspect reads", reason)
		}
	}
	// These do not say why a pod has no id, or explain says it by itself.
	others := []string{"KindMissing", "LockChanged", "OwnerUnknown", "PartitionsPaused", "PodRemoved", "SlotTaken"}
	for reason, meaning := range means {
		if strings.HasPrefix(meaning, "on ") && !slices.Contains(onPods, reason) && !slices.Contains(others, reason) {
			t.Errorf("explain does not show the Event %s of a pod: add it to podReasons of package inspect, or to the list in this test", reason)
		}
	}
}

func TestWhatTheCodeHasIsOnThePage(t *testing.T) {
	var text []byte
	for path := range pages() {
		page, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // a page of the project
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, page...)
	}
	for _, row := range []string{
		"| `ContractUnknown` |", "| `GateMissing` |", "| `OwnerUnknown` |", "| `PodRemoved` | Normal: ", "| `RolloutWaits` |",
		"| `idalloc.dev/evict` |", "| `idalloc.dev/id` | the id,", "| `idalloc.dev/count` |", "| `idalloc.dev/start-count` |", "| `idalloc.dev/identity` |",
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
