// Bench measures idalloc on a local control plane, in several parts:
//
//	make bench                                          # all of it; about half an hour
//	go -C test/bench run . -only claims -n 10,100       # other sizes
//	go -C test/bench run . -only claims -protocol idalloc,floor -n 1000
//	go -C test/bench run . -only restart,propagation -out "$PWD/bin/bench"
//
// -out is below this folder if it does not begin with /.
//
// claims lets N pods claim at once: with idalloc, with the protocol of CDAP, and as a yardstick with the requests that no safe claim can
// do without (floor).
//
// restart restarts a Deployment step by step. propagation measures how long news takes to arrive.
// footprint measures the command: its size and its memory. shares adds replicas to a workload with partitions.
// neighbours has pods of other workloads in the namespace.
//
// The pods are those of a real ReplicaSet, but no kubelet runs them: goroutines of this process play
// them, each with a token, a TCP and a TLS connection of its own. Requests are counted where they leave the
// process, bytes on the wire; what the API server says of itself comes from its metrics. A run fails if
// a pod has no id at the end, or two, or another one than the API server says; the times are printed, and
// no time fails a run.
package main
