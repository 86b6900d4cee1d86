package main

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/internal/agent"
)

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
