// Package agent is idalloc in a pod whose workload does not link it. It claims an id for the pod, shows it in files and over HTTP, and
// has the work under it stopped before the slot goes to another pod.
//
// Init claims and exits. Watch runs beside the workload and stops the work by hooks, or gives it time. Run starts the workload itself, as
// a child process. All three show an identity in the same way: a workload that is to stop learns it before anybody else, and one that
// may work learns it last; nothing shows an id that is fenced.
//
// It promises no more than the work keeps: a workload that does not stop when it is told to acts on.
package agent
