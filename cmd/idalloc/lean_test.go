package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

// A process that mostly waits is small, unless a variable sets its limits.
func TestAProcessThatWaitsIsLean(t *testing.T) {
	processors, memory := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1)
	t.Cleanup(func() { runtime.GOMAXPROCS(processors); debug.SetMemoryLimit(memory) })
	runtime.GOMAXPROCS(2)
	debug.SetMemoryLimit(math.MaxInt64)
	t.Setenv("GOMAXPROCS", "2")
	t.Setenv("GOMEMLIMIT", "off")
	lean()
	if processors, memory := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1); processors != 2 || memory != math.MaxInt64 {
		t.Errorf("%d processors and %d bytes, although the environment says otherwise", processors, memory)
	}
	for _, name := range []string{"GOMAXPROCS", "GOMEMLIMIT"} {
		if err := os.Unsetenv(name); err != nil { // what was set before comes back at the end
			t.Fatal(err)
		}
	}
	lean()
	if processors, memory := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1); processors != 1 || memory != 16<<20 {
		t.Errorf("%d processors and %d bytes", processors, memory)
	}
}
