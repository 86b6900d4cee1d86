package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/cli"
)

// exec returns how a command line of run ends: before it needs an API server.
func exec(t *testing.T, line ...string) (int, error) {
	t.Helper()
	t.Setenv("POD_NAME", "")
	root := newRoot()
	root.SetArgs(append([]string{"run"}, line...))
	err := root.ExecuteContext(t.Context())
	if status, ok := errors.AsType[statusError](err); ok {
		return status.code, err
	}
	return exitCode(err), err
}

func TestRunRefusesWhatCannotWork(t *testing.T) {
	for _, tc := range []struct {
		line []string
		code int
		says string
	}{
		{nil, cli.ExitUsage, "name a command"},
		{[]string{"--"}, cli.ExitUsage, "name a command"},
		{[]string{"--restart-on=count", "--", "sh"}, cli.ExitUsage, "id cannot be left out"},
		{[]string{"--restart-on=", "--", "sh"}, cli.ExitUsage, "id cannot be left out"},
		{[]string{"--restart-on=id,zone", "--", "sh"}, cli.ExitUsage, "use id,count or id"},
		{[]string{"--stop-timeout=-1s", "--", "sh"}, cli.ExitUsage, "use 0 or more"},
		{[]string{"--fence-after=2s", "--", "sh"}, cli.ExitUsage, "use 3s to"},
		{[]string{"--fence-after=30s", "--timeout=1s", "--", "sh"}, cli.ExitUsage, "the name or namespace of this pod is missing"},
		{[]string{"--on-partitions=ignore", "--", "sh"}, cli.ExitUsage, "use restart or signal"},
		{[]string{"--", "work-{partitions}"}, cli.ExitUsage, "the id goes into the arguments"},
		{[]string{"--on-partitions=signal", "--", "sh", "-c", "{partitions}"}, cli.ExitUsage, "the name or namespace of this pod is missing"},
		{[]string{"--", "work-{id}"}, cli.ExitUsage, "the id goes into the arguments"},
		{[]string{"--", "no-such-command", "-x"}, 127, "no-such-command"},
		{[]string{"/"}, 126, "cannot be executed"},
		{[]string{"sh", "--no-such-flag-of-idalloc"}, cli.ExitUsage, "the name or namespace of this pod is missing"}, // got as far as that
	} {
		t.Run(strings.Join(tc.line, " "), func(t *testing.T) {
			code, err := exec(t, tc.line...)
			if code != tc.code || err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("code %d, %v; want code %d and %q", code, err, tc.code, tc.says)
			}
		})
	}
}

// A command under idalloc run has IDALLOC_PARTITIONS, and may call idalloc.
func TestWhatAProgramIsToldIsNoFlag(t *testing.T) {
	t.Setenv("IDALLOC_PARTITIONS", "0-15")
	if code, err := exec(t, "--", "sh"); code != cli.ExitUsage || !strings.Contains(err.Error(), "the name or namespace of this pod is missing") {
		t.Errorf("code %d, %v", code, err)
	}
	t.Setenv("IDALLOC_WITH_PARTITIONS", "maybe")
	if code, err := exec(t, "--", "sh"); code != cli.ExitUsage || !strings.Contains(err.Error(), "IDALLOC_WITH_PARTITIONS") {
		t.Errorf("code %d, %v", code, err)
	}
}

func TestNoFlagReadsWhatAProgramIsTold(t *testing.T) {
	told := []string{"IDALLOC_ID", "IDALLOC_COUNT", "IDALLOC_TOKEN", "IDALLOC_STATE", "IDALLOC_STOP", "IDALLOC_PARTITIONS", "IDALLOC_PARTITIONS_STOP"}
	root := newRoot()
	for _, command := range append(root.Commands(), root) {
		check := func(f *pflag.Flag) {
			if slices.Contains(told, environment(f)) {
				t.Errorf("--%s of %s reads %s", f.Name, command.Name(), environment(f))
			}
		}
		command.PersistentFlags().VisitAll(check)
		command.Flags().VisitAll(check)
	}
}

func TestTheExitCodeIsTheCommands(t *testing.T) {
	if err := ended(0, nil); err != nil {
		t.Errorf("code 0 is an error: %v", err)
	}
	var status statusError
	if err := ended(7, nil); !errors.As(err, &status) || status.code != 7 || err.Error() != "" {
		t.Errorf("code 7 is %v", err)
	}
	if err := ended(0, agent.ErrTimeout); errors.As(err, &status) || !errors.Is(err, agent.ErrTimeout) {
		t.Errorf("an error is %v", err)
	}
	if err := ended(7, agent.ErrTimeout); errors.As(err, &status) || !errors.Is(err, agent.ErrTimeout) {
		t.Errorf("an error with a code is %v", err)
	}
}
