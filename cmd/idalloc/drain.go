package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/hook"
)

// The values of --drain and --drain-timeout-action.
const (
	drainHTTP  = "http"
	actionKeep = "keep"
	actionGive = "give"
)

// rolloutHelp is a part of the help of both init and watch.
const rolloutHelp = `In a rolling update a new pod waits until an old one gives its slot away. With a surge and
maxUnavailable: 0 Kubernetes in turn waits for the new pod before it stops an old one, so the update
stands still; below four replicas the default strategy comes to that. Set maxSurge: 0 and
maxUnavailable: 1, or give "idalloc watch" a drain hook, with which an old pod hands its slot over.`

// drainFlags say how watch learns that the work under an id has stopped.
type drainFlags struct {
	mode, exec string
	timeout    time.Duration
	action     string
}

func (d *drainFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&d.exec, "drain-exec", "", "drain hook: a command that stops the work under IDALLOC_ID, or if IDALLOC_PARTITIONS_STOP is set only that on these partitions, and exits with 0 when it has stopped; there is no shell: white space separates words, quotes keep them together; idalloc looks the command up when it starts, and its own image has no programs [IDALLOC_DRAIN_EXEC]")
	f.StringVar(&d.mode, "drain", "", "drain hook: with http, the program sees the state draining, or partitions that are stopping, stops, and then posts to /v1/drained on 127.0.0.1")
	f.DurationVar(&d.timeout, "drain-timeout", 5*time.Minute, "how long a drain hook may take; 0 waits for ever")
	f.StringVar(&d.action, "drain-timeout-action", actionKeep, "what to do when --drain-timeout is over: keep the slot, go on under the id, and ask the program again later; or give the slot away, so that two pods may act under one id for a moment")
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
