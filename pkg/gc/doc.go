// Package gc finds out which holders are dead, and frees their slots.
//
// Sweep is what "idalloc gc" does, for programs that do it themselves. The package may change with any version.
//
// A holder is dead when its pod object is gone, or its phase is Succeeded or Failed. A Terminating
// pod is alive: its process runs. Not being in a list is not being dead, because somebody may have
// relabelled the pod to debug it; every victim is confirmed by a live read, never from a cache.
package gc
