package hook

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

var errStop = errors.New("enough")

func held() identity.Identity {
	return identity.Identity{State: identity.StateAssigned, ID: 3, Count: 5, Token: 1795219200123}
}

func TestParse(t *testing.T) {
	for line, want := range map[string][]string{
		"/stop":                       {"/stop"},
		"  /stop\t--id  3\n":          {"/stop", "--id", "3"},
		`/bin/sh -c 'kill "$A" ; $B'`: {"/bin/sh", "-c", `kill "$A" ; $B`},
		`/stop "a 'b' c" d'e f'g ""`:  {"/stop", "a 'b' c", "de fg", ""},
		"/end\r\n--id":                {"/end", "--id"},
		`/stop a\ b`:                  {"/stop", `a\`, "b"},
	} {
		c, err := Parse(line)
		if err != nil || !slices.Equal(c.argv, want) {
			t.Errorf("%q is %q, %v, want %q", line, c, err, want)
		}
	}
	for line, want := range map[string]string{
		"": "names no program", " \t": "names no program", `""`: "names no program",
		"/stop 'it": "quote ' is not closed", `/stop "`: `quote " is not closed`,
	} {
		if c, err := Parse(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %q, %v, want an error with %q", line, c, err, want)
		}
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	for program, there := range map[string]bool{"/bin/sh": true, "sh": true, "/no/such/program": false, "no-such-program": false, "/etc/passwd": false} {
		err := (&Command{argv: []string{program, "/bin/sh"}}).Find()
		if (err == nil) != there || (!there && !strings.Contains(err.Error(), "no such program")) {
			t.Errorf("%s: %v", program, err)
		}
	}
}

func command(t *testing.T, script string) *Command {
	t.Helper()
	return &Command{argv: []string{"/bin/sh", "-c", script}}
}

func TestTheCommandKnowsWhatIsToStop(t *testing.T) {
	t.Setenv("IDALLOC_STOP", "99")
	t.Setenv("IDALLOC_PARTITIONS_STOP", "99")
	for want, stop := range map[string]Stop{
		"none none\n":  {},
		"3 none\n":     {Number: 3},
		"4 12-15,40\n": {Number: 4, Partitions: placement.Between(12, 15).Union(placement.Of(40))},
	} {
		out := filepath.Join(t.TempDir(), "out")
		t.Setenv("OUT", out)
		must(t, command(t, `echo "${IDALLOC_STOP-none} ${IDALLOC_PARTITIONS_STOP-none}" >"$OUT"`).Run(t.Context(), held(), stop))
		if b, err := os.ReadFile(out); err != nil || string(b) != want { //nolint:gosec // a file of the test
			t.Errorf("the command's environment says %q, %v; want %q", b, err, want)
		}
	}
}

func TestExitCodeZeroMeansStopped(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("IDALLOC_ID", "99")
	t.Setenv("OUT", out)
	must(t, command(t, `echo "$IDALLOC_ID $IDALLOC_COUNT $IDALLOC_TOKEN" >"$OUT"`).Run(t.Context(), held(), Stop{}))
	if b, err := os.ReadFile(out); err != nil || string(b) != "3 5 1795219200123\n" { //nolint:gosec // a file of the test
		t.Errorf("the command's environment says %q, %v", b, err)
	}
}

func TestAnythingElseDoesNot(t *testing.T) {
	err := command(t, `echo out; echo err >&2; exit 3`).Run(t.Context(), held(), Stop{})
	if err == nil || err.Error() != "/bin/sh: exit status 3; its output ends with: out\nerr" {
		t.Errorf("error is %v", err)
	}
	err = command(t, `kill -9 $$`).Run(t.Context(), held(), Stop{})
	if err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("error is %v", err)
	}
	err = (&Command{argv: []string{"/no/such/program"}}).Run(t.Context(), held(), Stop{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

func TestOnlyTheEndOfTheOutputIsQuoted(t *testing.T) {
	err := command(t, `i=0; while test $i -lt 1000; do echo "line $i"; i=$((i+1)); done; exit 1`).Run(t.Context(), held(), Stop{})
	if err == nil || !strings.HasSuffix(err.Error(), "line 998\nline 999") || len(err.Error()) > outputLimit+100 {
		t.Errorf("error is %v", err)
	}
}

func TestTheFirstByteOfTheOutputGoesFirst(t *testing.T) {
	var out tail
	end := strings.Repeat("-", outputLimit)
	if _, err := io.WriteString(&out, "<"+end); err != nil || out.String() != end {
		t.Errorf("%d bytes are quoted, want the last %d: %.10q…, %v", len(out.String()), outputLimit, out.String(), err)
	}
}

// All processes of the group hold a pipe open. When its reader gets to the end, the last of them is gone.
func TestTheEndOfTheContextKillsTheGroup(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	t.Setenv("PIPE", pipe)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- command(t, `echo before; exec >"$PIPE" 2>&1; trap '' TERM; sleep 1000 & echo up; wait`).Run(ctx, held(), Stop{})
	}()
	f, err := os.Open(pipe) //nolint:gosec // a pipe of the test
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	up := make([]byte, 3)
	if _, err := io.ReadFull(f, up); err != nil {
		t.Fatal(err)
	}
	cancel(errStop)
	if err := <-ended; !errors.Is(err, errStop) || !strings.HasSuffix(err.Error(), "ends with: before") {
		t.Errorf("error is %v, want the cause of the context's end, and the output", err)
	}
	if rest, err := io.ReadAll(f); err != nil || len(rest) > 0 {
		t.Errorf("after the kill: %q, %v", rest, err)
	}
}

func TestWhatACommandLeavesRunningDoesNotHoldItUp(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pid")
	t.Setenv("PIDS", pids)
	must(t, command(t, `sleep 1000 & echo $! >"$PIDS"`).Run(t.Context(), held(), Stop{}))
	if err := command(t, `kill -9 $(cat "$PIDS")`).Run(t.Context(), held(), Stop{}); err != nil {
		t.Errorf("what the command left running was killed with it: %v", err)
	}
}
