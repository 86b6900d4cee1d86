// Fileworker is a program that knows nothing about Kubernetes: it reads which id it has out of how
// many from the files that an idalloc container publishes in a shared directory. config/examples/files
// and config/examples/sidecar run it.
//
// What to copy from it is follow in main.go: identity.Follow calls a function with each new identity,
// and the function starts and stops the work. A program in another language does the same with the
// files themselves: open "id", treat "no such file" as "no id now", and look again when the link
// "..data" was replaced.
//
// With DRAIN_URL it also takes part in a hand-over ("idalloc watch --drain=http"): drain.go. It sends the
// content of the file drain-secret along.
//
//	IDALLOC_DIR   where the files are; default /var/run/idalloc
//	DRAIN_URL     when set: where to say that the work has stopped, http://127.0.0.1:8089/v1/drained
package main
