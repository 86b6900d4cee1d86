//go:build unix

package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Exit codes with the same meaning as in shells.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
	signalled         = 128 // plus the signal's number
)

// StartError explains why a command could not be started.
type StartError struct {
	// Code is the exit code of a shell in this case: 127 if the command was not found, 126 if it cannot be executed.
	Code int
	err  error
}

// Error explains what is wrong and what to do.
func (e *StartError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.err }

func startError(name string, err error) *StartError {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		// Error: exit code 127, of `run`: there is no such command.
		// Do: give its path, or a name in `PATH`.
		return &StartError{Code: codeNotFound, err: fmt.Errorf("command %q not found: give its path, or a name in PATH, after \"--\": %w", name, err)}
	}
	// Error: exit code 126, of `run`: this machine cannot execute the command.
	// Do: use an executable file for this machine.
	return &StartError{Code: codeNotExecutable, err: fmt.Errorf("command %q cannot be executed: it must be an executable file for this machine: %w", name, err)}
}

// Find returns the path of a command. It searches as a shell does. The error is a *StartError.
func Find(name string) (path string, err error) {
	path, err = exec.LookPath(name)
	if err != nil {
		return "", startError(name, err)
	}
	return path, nil
}

// Fill replaces {id}, {count}, {token}, {pod} and {namespace} in the arguments with the values of an identity, and {partitions} if the identity has partitions.
// {{id}} becomes {id}, and so on. Everything else stays as it is.
func Fill(args []string, id identity.Identity) []string {
	values := [][2]string{
		{"id", strconv.Itoa(id.ID)}, {"count", strconv.Itoa(id.Count)}, {"token", strconv.FormatInt(id.Token, 10)},
		{"pod", id.Pod}, {"namespace", id.Namespace},
	}
	if id.Partitions.Enabled() {
		values = append(values, [2]string{"partitions", id.Partitions.Owned().String()})
	}
	pairs := make([]string, 0, 4*len(values))
	for _, v := range values {
		single := "{" + v[0] + "}"
		pairs = append(pairs, "{"+single+"}", single, single, v[1]) // doubled braces come first, because the first match counts
	}
	fill := strings.NewReplacer(pairs...)
	filled := make([]string, 0, len(args))
	for _, arg := range args {
		filled = append(filled, fill.Replace(arg))
	}
	return filled
}

// NamesPartitions reports whether one of the arguments contains {partitions}.
func NamesPartitions(args []string) bool {
	none := identity.Identity{Partitions: identity.PartitionsOf(1, nil, placement.Set{}, 0)}
	some := identity.Identity{Partitions: identity.PartitionsOf(1, []identity.Share{{Set: placement.Of(0)}}, placement.Set{}, 0)}
	return !slices.Equal(Fill(args, none), Fill(args, some))
}

// environment returns base with the variables of the identity added. They replace existing ones.
func environment(base []string, id identity.Identity) []string {
	own := []string{
		"IDALLOC_ID=" + strconv.Itoa(id.ID),
		"IDALLOC_COUNT=" + strconv.Itoa(id.Count),
		"IDALLOC_TOKEN=" + strconv.FormatInt(id.Token, 10),
	}
	if id.Partitions.Enabled() {
		own = append(own, "IDALLOC_PARTITIONS="+id.Partitions.Owned().String())
	}
	env := make([]string, 0, len(base)+len(own))
	for _, v := range base {
		key, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(o, key+"=") }) {
			env = append(env, v)
		}
	}
	return append(env, own...)
}
