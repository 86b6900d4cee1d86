// Package overlap finds out whether two pods ever showed one id at the same moment, without trusting
// idalloc for anything.
//
// Every program appends what it sees to a log of its own every few milliseconds (Writer). The time is
// the host's monotonic clock, which all containers of one host share and no program can set. Afterwards
// Check compares the logs of all pods.
//
// It proves overlaps, not their absence: what is shorter than the distance of two samples may escape.
// It never reports an overlap that was none, however long a process was suspended between reading the
// id and reading the clock, because each sample carries the time before and after.
package overlap
