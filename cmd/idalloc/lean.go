package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// collectAt is the memory limit of Go's runtime, in bytes. Close to it, the runtime collects garbage more often instead of growing. A holder needs half of it
// with 4,000 entries. A pod that plans lists thousands of pods at once; without the limit it would keep twice their size for minutes. The limit is soft: a
// process that needs more gets more.
const collectAt = 16 << 20

// lean reduces the memory of a process that runs next to a program and mostly waits. Each processor of Go's runtime has its own caches: without lean, a process
// on a node with 64 cores would need 4 MiB more (measured). GOMAXPROCS and GOMEMLIMIT override it.
func lean() {
	if _, set := os.LookupEnv("GOMAXPROCS"); !set {
		runtime.GOMAXPROCS(1)
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(collectAt)
	}
}
