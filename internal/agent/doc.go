// Package agent is idalloc in a pod whose program does not link it. It claims an id for the pod, shows it in files and over HTTP, and makes sure that the work
// under the id has stopped before another pod gets the slot. cmd/idalloc uses it.
//
// Init claims an id and returns. Watch runs next to the program; it stops the work by hooks, or gives it time to stop. Run starts the program itself, as a
// child process.
//
// All three show an identity in the same order. A program that must stop learns that before the files and the HTTP answers change. A program that may work
// learns that last. Nothing shows an id that is fenced.
//
// The package depends on the program: it cannot help if the program does not stop when told to.
package agent
