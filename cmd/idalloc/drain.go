package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/internal/agent"
	"github.com/idalloc/idalloc/internal/hook"
)

// What --drain and --drain-timeout-action take.
const (
	drainHTTP  = "http"
	actionKeep = "keep"
	actionGive = "give"
)

// rolloutHelp is the same in the help of init and watch.
const rolloutHelp = `A new pod of a rolling update waits until an old one gives its slot away, and with a surge and
maxUnavailable: 0, which the default strategy comes to below four replicas, Kubernetes waits for the
new pod before it stops an old one: neither moves. Set maxSurge: 0 and maxUnavailable: 1, or give
"idalloc watch" a drain hook, with which an old pod hands its slot over.`

// drainFlags say how watch learns that the work under an id has stopped.
type drainFlags struct {
	mode, exec string
	timeout    time.Duration
	action     string
}

func (d *drainFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&d.exec, "drain-exec", "", "drain hook: a command that stops the work under IDALLOC_ID and exits with 0 when it has stopped; run without a shell, words are separated by white space and kept together by quotes; looked up at the start: idalloc's own image has no programs")
	f.StringVar(&d.mode, "drain", "", "drain hook: with http, the workload posts to /v1/drained on 127.0.0.1 when it sees the state draining and has stopped")
	f.DurationVar(&d.timeout, "drain-timeout", 5*time.Minute, "bound for a drain hook; 0 waits for ever")
	f.StringVar(&d.action, "drain-timeout-action", actionKeep, "what happens at --drain-timeout: keep the slot and go on under the id, to be asked again later, or give the slot away; then two pods may act under one id for a moment")
}

// check returns a usage error, or the drain hook if there is one.
func (d *drainFlags) check(httpAddress string) (hooks agent.Hooks, err error) {
	hooks = agent.Hooks{DrainHTTP: d.mode == drainHTTP, DrainTimeout: d.timeout, GiveAtTimeout: d.action == actionGive}
	switch {
	case d.mode != "" && d.mode != drainHTTP:
		return hooks, usageError{fmt.Errorf("--drain %q: use http, or --drain-exec for a command", d.mode)}
	case d.mode != "" && d.exec != "":
		return hooks, usageError{errors.New("--drain=http and --drain-exec are two ways to say the same: choose one")}
	case d.mode != "" && httpAddress == "":
		return hooks, usageError{errors.New("--drain=http needs an --http-address for the workload to post to")}
	case d.timeout < 0:
		return hooks, usageError{fmt.Errorf("--drain-timeout %s: use a positive duration, or 0 to wait for ever", d.timeout)}
	case d.action != actionKeep && d.action != actionGive:
		return hooks, usageError{fmt.Errorf("--drain-timeout-action %q: use keep or give", d.action)}
	}
	hooks.Drain, err = parseHook("--drain-exec", d.exec)
	return hooks, err
}

// parseHook returns nil for a flag that is not set.
func parseHook(flag, line string) (*hook.Command, error) {
	if line == "" {
		return nil, nil //nolint:nilnil // no hook is no error
	}
	c, err := hook.Parse(line)
	if err == nil {
		err = c.Look() // now, and not when the work has to stop
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("%s %q: %w", flag, line, err)}
	}
	return c, nil
}
