// Package simulation runs the production code through faults that a real cluster shows once in a year.
//
// # Where to look
//
// Each package imports only those above it.
//
//	dice     random numbers, derived from names
//	object   API objects: maps of maps
//	profile  what a history is about
//	clock    what time it is on a machine
//	server   the API server
//	world    the production code and what it meets: network, controllers, kubelets, work
//	checks   the judge, who says which promises were broken
//	faults   what goes wrong, and when
//
// This package plays histories (run.go), in several programs at once (driver.go), which are built with an overlay of Go's runtime (overlay.go). It shrinks
// those that break a promise, makes pages of them (report.go), and hunts mutants (mutants.go).
//
// # What is real
//
// Each simulated pod runs pkg/context (Run or Start), or the allocator with the options of a command, as it is shipped, in this process: its loop,
// the plan, the codec, the store, gc, the watches, and client-go below them. They talk to the simulated
// API server through an http.RoundTripper, in JSON, as they would to a real one.
//
// # What is simulated
//
//   - The API server (server): one resourceVersion for all objects, JSON Patch with
//     the library that the real one uses and its 422, merge patch, metadata.generation as each kind keeps
//     it, managedFields of annotations, consistent and stale lists, watches with bookmarks and initial events, 410, the size limit
//     of annotations, deletion with grace.
//   - The network (world/network.go): requests and answers are lost, late, doubled, or refused. A connection that says nothing is
//     given up after up to a minute, as HTTP/2's pings do.
//   - Controllers (world/controllers.go): Deployment with rolling updates or Recreate, ReplicaSet, StatefulSet (Parallel or OrderedReady), Job
//     (with completion indexes or without), pod garbage collector. They act late, by a random time, on what is stored.
//   - Workloads (world/work.go): Run and Start, work that needs its time to stop, that cannot be stopped at the moment, that runs on over
//     a new count; revisions with another fence-after, or without strict mode beside others with it.
//   - Work in another program than idalloc (world/beside.go): that of run in strict mode, which is stopped before its time is over and leaves what
//     it knows of quarantines to the next process; and that of watch, which goes on while the watcher is started again, with a hook or without.
//   - Somebody who runs "idalloc gc" (world/sweep.go).
//   - Nodes and their kubelets (world/kubelet.go): start, readiness, graceful stop, kill, eviction, restart.
//   - Time: a testing/synctest bubble. Each machine has a clock of its own, off by hours, and in strict mode fast
//     or slow by up to 2.4 percent.
//   - Steps (world/holdup.go): any request of any process waits before it is sent, before it is applied or before its answer arrives,
//     for a drawn time or until others got on, while other faults happen. Each history has a subset of the faults, at rates of its own.
//   - Suspend: everything by which a process hears of anything, requests, watches, timers of its clock, stands still
//     until it goes on, and so does its work.
//
// # One seed, one history
//
// All that happens is drawn from the seed: by dice that are derived from names (which pod, which request, the how
// manieth), not from the order of execution. In a bubble time moves only when nobody can run, so two events
// at different nanoseconds never race. What is left is Go's own randomness: select, map order, math/rand. The
// driver therefore builds the simulator with an overlay of a few lines of the runtime (overlay.go), in which these are
// functions of virtual time. Without it a seed gives nearly the same history.
//
// # What is checked
//
// By checks: no two pods act under one id; a later holder's token is higher; when the faults stop, nobody waits beside a free slot,
// and after an operator's repairs every slot is held and nobody waits; nobody moves without a cause; the number of requests is bounded; every goroutine ends.
// A checker that cannot fail is worth nothing: mutants/ has changes of the production code that are to be caught;
// docs/robustness.md says which are.
//
// # What is not promised
//
// It is a model. etcd, the network and the kernel are as described here, no worse; requests are applied one at a time.
// The simulated objects have only the fields that idalloc or the controllers look at. Containers share a
// process, so nothing here tests files, HTTP, signals or the child process of "idalloc run": what the commands do with them is modelled. Suspend is modelled at the process's
// ways to hear of anything; timers of client-go itself still run, and what they send waits.
package simulation
