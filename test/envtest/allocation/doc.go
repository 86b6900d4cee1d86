// Package allocation holds the suites that run idalloc under real controllers: the command in the
// pods of a process node, and pkg/context inside the test process where a spec has to see or break
// its requests.
//
// Every spec that runs pods ends with the overlap check: the workloads log which id they read, when,
// and no two pods may have shown one id at the same moment.
package allocation
