// Demo shows idalloc at work on a control plane of its own, in about a minute and without a cluster:
//
//	make demo
//
// A Deployment starts with five pods, scales to eight, loses two pods and scales to three. The API
// server, the controllers and the idalloc command are the real ones; the pods run as processes of
// this machine (test/envtest/node). On a terminal a table of the slots is redrawn in place; elsewhere
// every change is a line. NO_COLOR turns the colours off, -plain asks for lines.
//
// At the end the logs of the workloads themselves, which know nothing of Kubernetes, are compared
// (test/overlap). The demo fails if two pods ever showed one id at once, or if a phase does not end in
// time. Nothing is left running, after Ctrl-C neither.
package main
