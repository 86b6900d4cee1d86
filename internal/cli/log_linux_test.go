package cli

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// A server's words, which client-go's log quotes, have no effect on a terminal and make no line of their own.
func TestALogOnAConsoleHasNoEffectOnIt(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = w
	log, err := (&Log{Format: "console"}).Logger()
	os.Stderr = before
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(klog.ClearLogger)
	log.Info("a server says: \x1b[2Jall is well\u202e\u009b\n2026-01-01T00:00:00Z\tinfo\tforged", "field", "\x1b[2J\u009b\u202e")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if said := string(text); !strings.Contains(said, "all is well") || strings.ContainsAny(said, "\x1b\u202e\u009b") || strings.Count(said, "\n") != 1 {
		t.Errorf("the log says %q", said)
	}
}

// People read lines, and programs read JSON.
func TestTheLogIsForPeopleAtATerminal(t *testing.T) {
	piped, toPipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	screen, toTerminal := terminal(t)
	for name, tc := range map[string]struct {
		to, from *os.File
		json     bool
	}{"a pipe": {toPipe, piped, true}, "a terminal": {toTerminal, screen, false}} {
		before := os.Stderr
		os.Stderr = tc.to
		log, err := (&Log{Format: "auto"}).Logger()
		os.Stderr = before
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(klog.ClearLogger)
		log.Info("claimed")
		line, err := bufio.NewReader(tc.from).ReadString('\n')
		if err != nil || strings.HasPrefix(line, "{") != tc.json || !strings.Contains(line, "claimed") {
			t.Errorf("on %s the log says %q, %v", name, line, err)
		}
	}
}
