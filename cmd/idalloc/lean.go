package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// collectAt is the size, in bytes, at which memory is collected more often rather than grown. A holder
// needs half of it with 4,000 entries; a pod that plans lists thousands of pods at once, and would
// keep twice their size for minutes. More is taken where it has to be: the limit is a soft one.
const collectAt = 16 << 20

// lean keeps a process small that stays beside a workload and mostly waits. Each processor of Go's
// runtime has caches of its own, so on a node of 64 cores it would take 4 MiB more (measured). Who
// sets GOMAXPROCS or GOMEMLIMIT is obeyed.
func lean() {
	if _, set := os.LookupEnv("GOMAXPROCS"); !set {
		runtime.GOMAXPROCS(1)
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(collectAt)
	}
}
