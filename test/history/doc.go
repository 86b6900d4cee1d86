// Package history is what a run with faults leaves behind for "make report": who showed which id when,
// what was broken when, and what was counted. The chaos suite writes it, and a simulator can for a seed.
// Both are of the root module, so this package is, too; test/report, which reads it, is a module of its own.
//
// A run is a directory:
//
//	run.json        one Summary: what ran, and totals that the rest does not show
//	faults.jsonl    one Fault a line, in any order
//	NAME/POD.log    for each workload a folder with the logs of test/overlap, one for each pod
//
// All times are nanoseconds of one clock: overlap.Now where the run was real, the simulator's own clock
// where it was simulated. Where the clock starts does not matter.
//
// A Writer makes all of it. Who runs real programs lets them write their logs into what Workload
// returns; who simulates them hands the samples to Records. A sample at every change of what a pod
// shows, and one at its end, is enough: samples with the same id and token are drawn as one bar.
package history
