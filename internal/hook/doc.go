// Package hook is how the watcher learns that a workload which is not linked has stopped working
// under an id: a command that stops it (Command), or a word from the workload (Gate).
//
// It does not decide when to ask or what to do without an answer, and it does not bound the time:
// the context of the caller does.
package hook
