// Bench measures how N pods of one Deployment that start at once get their ids, with idalloc and with
// the protocol of CDAP, side by side on one local control plane:
//
//	make bench                          # 10, 50 and 100 pods
//	go run ./test/bench -n 300 -csv     # other sizes, for a program to read
//	go run ./test/bench -footprint      # size of the command, memory of one watcher
//
// The pods are those of a real ReplicaSet, but no node runs them: a goroutine of this process plays
// each pod, with the credentials of the pods' service account over a TCP and TLS connection of its own.
// Requests are counted where they leave the process. A run fails if a pod has no id at the end, or
// two, or another one than the Deployment says; the times are printed and judged by nobody.
package main
