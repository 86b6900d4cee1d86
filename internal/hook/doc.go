// Package hook tells "idalloc watch" when a program has stopped its work under an id. A Command stops the program. A Gate receives the program's report that it
// has stopped, Parts its reports about some partitions. Package agent uses it.
//
// The package does not decide when to stop a program, or what to do if that fails. It sets no time limit; the caller's context does.
package hook
