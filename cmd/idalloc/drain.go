package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/hook"
)

// Values of --drain and --drain-timeout-action.
const (
	drainHTTP  = "http"
	actionKeep = "keep"
	actionGive = "give"
)

// rolloutHelp is part of the help of init and watch.
const rolloutHelp = `In a rolling update with maxUnavailable: 0 a new pod waits for the slot of an
old one, and Kubernetes waits for the new pod. Set maxSurge: 0 and
maxUnavailable: 1, or give "idalloc watch" a drain hook: then an old pod hands
its slot over.`

// drainFlags configure how watch learns that the work under an id has stopped.
type drainFlags struct {
	mode, exec string
	timeout    time.Duration
	action     string
}

func (d *drainFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&d.exec, "drain-exec", "", "drain hook: command that exits with 0 when the work has stopped")
	f.StringVar(&d.mode, "drain", "", "drain hook: http, if the program posts to /v1/drained")
	f.DurationVar(&d.timeout, "drain-timeout", hook.DefaultTimeout, "time that a drain hook may take; 0 is no limit")
	f.StringVar(&d.action, "drain-timeout-action", actionKeep, "after --drain-timeout: keep the slot, or give it away")
}

// check returns the hooks that the flags configure, or a usage error.
func (d *drainFlags) check(httpAddress string) (hooks agent.Hooks, err error) {
	hooks = agent.Hooks{DrainHTTP: d.mode == drainHTTP, DrainTimeout: d.timeout, GiveAtTimeout: d.action == actionGive}
	switch {
	case d.mode != "" && d.mode != drainHTTP:
		return hooks, cli.Usagef("--drain %q: use http, or --drain-exec for a command", d.mode)
	case d.mode != "" && d.exec != "":
		return hooks, cli.Usagef("--drain=http and --drain-exec are two ways to say the same: choose one")
	case d.mode != "" && httpAddress == "":
		return hooks, cli.Usagef("--drain=http needs an --http-address for the program to post to")
	case d.timeout < 0:
		return hooks, cli.Usagef("--drain-timeout %s: use a positive duration, or 0 to wait for ever", d.timeout)
	case d.action != actionKeep && d.action != actionGive:
		return hooks, cli.Usagef("--drain-timeout-action %q: use keep or give", d.action)
	}
	hooks.Drain, err = parseHook("--drain-exec", d.exec)
	return hooks, err
}

// parseHook returns the command of a flag, or nil if the flag is not set.
func parseHook(flag, line string) (*hook.Command, error) {
	if line == "" {
		return nil, nil //nolint:nilnil // no hook is no error
	}
	c, err := hook.Parse(line)
	if err == nil {
		err = c.Find() // a missing program should be noticed now, not when the work must stop
	}
	if err != nil {
		return nil, cli.Usagef("%s %q: %w", flag, line, err)
	}
	return c, nil
}
