package main

import (
	"context"
	"math"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/test/bench/program"
)

const (
	// Memory has settled when it has stayed within 1 % for this many looks in a row.
	settledLooks = 50
	tolerance    = 0.01
	kib          = 1024 // in a MiB
)

// settledMemory returns a process's memory when it has stopped changing.
func settledMemory(ctx context.Context, pid int) (m program.Memory, err error) {
	steady, from := 0, 0.0
	err = wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		if m, err = program.ReadMemory(pid); err != nil {
			return false, err
		}
		if math.Abs(m.Resident-from) > tolerance*from {
			steady, from = 0, m.Resident
		}
		steady++
		return steady > settledLooks, nil
	})
	return m, err
}
