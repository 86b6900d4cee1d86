// Package agent is idalloc in a pod whose workload does not link it. It claims an id for the pod, shows it in files and over
// HTTP, and makes sure that the work under the id has stopped before the slot goes to another pod. It is for cmd/idalloc.
//
// Init claims an id and returns. Watch runs beside the workload; it stops the work by hooks, or gives it time to stop. Run
// starts the workload itself, as a child process.
//
// All three show an identity in the same order. A workload that must stop learns that before the files and the HTTP answers
// show it. A workload that may work learns that last. Nothing shows an id that is fenced.
//
// The package depends on the workload: it cannot help if a workload does not stop when it is told to.
package agent
