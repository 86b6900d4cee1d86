package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// DefaultTimeout is how long the program has to stop its work, unless --drain-timeout says otherwise.
const DefaultTimeout = 5 * time.Minute

const (
	// outputLimit is the maximum number of bytes that an error quotes from the end of a command's output.
	outputLimit = 1 << 10
	// outputDelay limits the wait for the output of processes that the command left running.
	outputDelay = time.Second
)

// Variables of a stop.
const (
	stopVariable       = "IDALLOC_STOP"
	partitionsVariable = "IDALLOC_PARTITIONS_STOP"
)

// Stop describes the work that the command should stop.
type Stop struct {
	// Number distinguishes this stop from others. It is 0 if it has none.
	Number int
	// Partitions are the partitions on which the work should stop. If the set is empty, all work under the id should stop.
	Partitions placement.Set
}

// Command is a program and its arguments.
type Command struct {
	argv []string
}

// Parse splits a command line without a shell. White space separates words. Single or double quotes keep a word with white space together. No other character
// has a meaning. The error explains what is wrong with the line.
func Parse(line string) (*Command, error) {
	argv, err := split(line)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("it names no program")
	}
	return &Command{argv: argv}, nil
}

// Find returns an error if the program cannot be found or executed in this container.
func (c *Command) Find() error {
	if _, err := exec.LookPath(c.argv[0]); err != nil {
		// Error: exit code 2: `--drain-exec` or `--fence-exec` names a program that is missing in the container of `idalloc watch`.
		// Do: see [drain hooks](operations.md#drain-hooks).
		return fmt.Errorf("this container has no such program (%w): idalloc's own image has no shell and no programs: copy /idalloc into the workload's image, or the program into idalloc's", err)
	}
	return nil
}

func split(line string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inWord := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// Run runs the command and blocks until it has ended. It returns nil if the command exited with 0. If ctx ends earlier, it kills the command and all processes
// of its group, and the error wraps the cause of ctx. Errors quote the end of the command's output.
//
// The command has the environment of this process, with IDALLOC_ID, IDALLOC_COUNT and IDALLOC_TOKEN of id, and with IDALLOC_STOP and IDALLOC_PARTITIONS_STOP of
// stop if it has them.
func (c *Command) Run(ctx context.Context, id identity.Identity, stop Stop) error {
	var output tail
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...) //nolint:gosec // the operator names the command
	cmd.Env = environment(os.Environ(), id, stop)
	cmd.Stdout, cmd.Stderr = &output, &output
	// The command gets its own group, so that the processes that it starts are killed with it.
	group(cmd)
	cmd.WaitDelay = outputDelay
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil // the exit code is 0; processes that the command left running do not matter
	}
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	if text := output.String(); text != "" {
		return fmt.Errorf("%s: %w; its output ends with: %s", c.argv[0], err, text)
	}
	return fmt.Errorf("%s: %w", c.argv[0], err)
}

// environment returns base with the variables of the id and of the stop.
func environment(base []string, id identity.Identity, stop Stop) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(v string) bool {
		return strings.HasPrefix(v, stopVariable+"=") || strings.HasPrefix(v, partitionsVariable+"=")
	})
	env = append(env,
		"IDALLOC_ID="+strconv.Itoa(id.ID),
		"IDALLOC_COUNT="+strconv.Itoa(id.Count),
		"IDALLOC_TOKEN="+strconv.FormatInt(id.Token, 10),
	)
	if stop.Number > 0 {
		env = append(env, stopVariable+"="+strconv.Itoa(stop.Number))
	}
	if !stop.Partitions.Empty() {
		env = append(env, partitionsVariable+"="+stop.Partitions.String())
	}
	return env
}

// tail keeps the last outputLimit bytes written to it.
type tail struct{ data []byte }

// Write implements io.Writer. It needs no lock: os/exec writes from one goroutine if both streams have the same writer.
func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if over := len(t.data) - outputLimit; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// String returns the bytes as valid UTF-8, with white space trimmed at both ends.
func (t *tail) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(t.data), "?"))
}
