package main

import (
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/cli"
)

// pastChecks is in the error of what comes after the checks of the hooks' flags.
const pastChecks = "--log-format"

// parse returns what watch makes of a command line, up to the checks of its flags.
func parse(args ...string) error {
	root := newRoot()
	root.SetArgs(append([]string{"watch", "--pod-name", "", pastChecks, "none"}, args...))
	return root.Execute()
}

func TestHookFlagsAreChecked(t *testing.T) {
	for line, want := range map[string]string{
		"--drain=exec":                                   "use http, or --drain-exec",
		"--drain=http --drain-exec=/stop":                "choose one",
		"--drain=http --http-address=":                   "needs an --http-address",
		"--drain=http --drain-timeout=-1s":               "or 0 to wait for ever",
		"--drain=http --drain-timeout-action=x":          "use keep or give",
		"--drain-exec='":                                 "is not closed",
		"--fence-after=30s":                              "watch by itself cannot",
		"--fence-exec=/kill":                             "set both",
		"--fence-after=2s --fence-exec=/kill":            "use 3s to",
		"--fence-after=61m --fence-exec=sh":              "use 3s to",
		"--fence-after=1h --fence-exec=sh":               pastChecks,
		"--fence-after=-5s --fence-exec=/kill":           "use 3s to",
		"--fence-after=30s --fence-exec=\"/kill":         "is not closed",
		"--fence-after=30s --fence-exec=sh --timeout=1s": pastChecks,
		"--timeout=1s":                                   pastChecks,
		"--drain=http":                                   pastChecks,
		"--drain-exec=/bin/sh --drain-timeout=0":         pastChecks,
		"--fence-after=3s --fence-exec=/bin/sh":          pastChecks,
		"--drain-timeout-action=give --drain-exec=sh":    pastChecks,
		"--drain=http --fence-after=9s --fence-exec=sh":  pastChecks,
		"--drain-exec=/no/such/stop":                     "no shell and no programs",
		"--fence-after=3s --fence-exec=no-such-kill":     "no shell and no programs",
		"--drain-exec=/etc":                              "no shell and no programs",
	} {
		err := parse(strings.Fields(line)...)
		if exitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("watch %s: %v, want a usage error with %q", line, err, want)
		}
	}
}

// A hook that is asked for and not used would give ids away while work continues.
func TestHookFlagsBecomeHooks(t *testing.T) {
	for _, tc := range []struct {
		flags drainFlags
		want  agent.Hooks
	}{
		{drainFlags{action: actionKeep}, agent.Hooks{}},
		{drainFlags{mode: drainHTTP, timeout: time.Minute, action: actionKeep}, agent.Hooks{DrainHTTP: true, DrainTimeout: time.Minute}},
		{drainFlags{mode: drainHTTP, action: actionGive}, agent.Hooks{DrainHTTP: true, GiveAtTimeout: true}},
	} {
		if got, err := tc.flags.check(":8089"); err != nil || got != tc.want {
			t.Errorf("%+v: %+v, %v", tc.flags, got, err)
		}
	}
	hooks, err := (&drainFlags{exec: "sh -c stop", action: actionKeep}).check("")
	if err != nil || hooks.Drain == nil || hooks.DrainHTTP {
		t.Errorf("a command: %+v, %v", hooks, err)
	}
	if command, err := (&fenceFlags{after: time.Minute, exec: "sh"}).check(); err != nil || command == nil {
		t.Errorf("strict mode: %v, %v", command, err)
	}
	if command, err := (&fenceFlags{}).check(); err != nil || command != nil {
		t.Errorf("without strict mode: %v, %v", command, err)
	}
}

func TestInitRefusesStrictMode(t *testing.T) {
	refused := func(args ...string) {
		t.Helper()
		root := newRoot()
		root.SetArgs(append([]string{"init"}, args...))
		err := root.Execute()
		if exitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "cannot expire") {
			t.Errorf("init %v: %v", args, err)
		}
	}
	refused("--fence-after=30s")
	t.Setenv("IDALLOC_FENCE_AFTER", "30s")
	refused()
}
