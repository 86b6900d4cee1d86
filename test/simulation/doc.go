// Package simulation runs the production code through faults that a real cluster shows once in a year, in virtual time.
//
// # Where to look
//
// Each package imports only packages above it. The checks and the faults know nothing of each other.
//
//	dice     random numbers, derived from names
//	object   API objects: maps of maps
//	profile  what a history is about
//	clock    what time it is on a machine
//	server   the API server
//	world    the production code and what it meets: network, controllers, kubelets, work
//	checks   the judge, which says which promises were broken
//	faults   what goes wrong, and when
//	overlay  the build of the simulator
//
// This package plays histories (run.go), in several programs at once (driver.go). It leaves out faults for as long as the
// history still breaks a promise, and hunts mutants (mutants.go).
//
// # What is real
//
// Each simulated pod runs package idalloc (Run or Start), or the allocator with the options of a command, as it is shipped:
// its loop, duty, proposal, the store, gc, the watches, and client-go below them. They run in this process and
// talk to the simulated API server through an http.RoundTripper, in JSON, as they would to a real one.
//
// # What is simulated
//
//   - The API server (package server).
//   - The network (world/network.go): requests and answers are lost, late, doubled, or refused. A connection that says
//     nothing is closed after up to a minute, as HTTP/2's pings do.
//   - Controllers (world/controllers.go): Deployment with rolling updates or Recreate, ReplicaSet, StatefulSet (Parallel
//     or OrderedReady), Job (with completion indexes or without), pod garbage collector. They act late, by a random
//     time, on what is stored.
//   - Nodes and their kubelets (world/kubelet.go): start, readiness, graceful stop, kill, eviction, restart.
//   - Programs (world/work.go): Run and Start; work that needs its time to stop, that cannot be stopped at the moment,
//     or that runs on over a new count; revisions with another fence-after, or without strict mode beside others
//     with it.
//   - Partitions (world/partitions.go): work on some of them stops while the rest continues, some pods never yield, and some
//     revisions work on none. These programs use the allocator as idalloc.RunPartitions does.
//   - Work in another program than idalloc (world/beside.go). That of run in strict mode is stopped before its time is
//     over. That of watch continues while the watcher is started again, with a hook or without. So does its work on
//     partitions (world/beside_partitions.go).
//   - Woes (world/woes.go, world/hang.go): writes that another client undoes, work on partitions that hangs, and programs that end for good
//     while their pods live.
//   - A person who runs "idalloc gc" (world/sweep.go).
//   - Time (package clock).
//   - Held-up requests (world/holdup.go): any request of any process waits before it is sent, before it is applied or before its
//     answer arrives. It waits for a drawn time or until others got on, while other faults happen.
//   - Suspend: everything by which a process hears of anything stands still until it is resumed, and so does its
//     work: requests, watches, timers of its clock.
//
// # One seed, one history
//
// All that happens is drawn from the seed, by dice that are derived from names: which pod, which request, how many
// times before. It does not depend on the order of execution, nor, with the overlay, on Go's own randomness.
//
// # What is checked
//
// Package checks lists the promises. mutants.txt has changes of the production code that are to break them. Beside that,
// every goroutine of the production code has to end.
//
// # What is not promised
//
// It is a model. etcd, the network and the kernel are as described here, no worse; requests are applied one at a time.
// Containers share a process, so nothing here tests files, HTTP, signals or the child process of "idalloc run": what the
// commands do with them is modelled. Suspend is modelled at the process's ways to hear of anything. Timers of
// client-go itself still run, and what they send waits.
package simulation
