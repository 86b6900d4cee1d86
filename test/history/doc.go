// Package history is what a chaos run leaves behind: which pod showed which id when, and what was broken when.
//
// A run is a directory:
//
//	run.txt         what was shown and what was broken, by time, below what broke a promise
//	NAME/POD.log    for each workload a folder with the logs of test/overlap, one for each pod
package history
