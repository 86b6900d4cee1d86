package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/idalloc/idalloc/internal/agent"
)

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
