// Package history is what a run with faults leaves behind: which pod showed which id when, what was broken when, and what was counted. The chaos
// suite writes it, and the simulation for a seed.
//
// A run is a directory:
//
//	index.html      the page of the run, which needs nothing but a browser
//	NAME/POD.log    for each workload a folder with the logs of test/overlap, one for each pod
//
// All times are nanoseconds of one clock: overlap.Now where the run was real, the simulator's own clock
// where it was simulated. Where the clock starts does not matter.
//
// Real programs write their logs into what Workload returns; the simulation hands its samples to Records. A sample at every change of what a pod
// shows, and one at its end, is enough: samples with the same id and token are drawn as one bar.
package history
