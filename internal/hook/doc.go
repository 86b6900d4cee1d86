// Package hook tells "idalloc watch" when a program has stopped its work under an id. A Command stops the program. A Gate
// receives the program's report that it has stopped, and Parts those about some partitions. It is for package agent.
//
// The package does not decide when to stop a program, or what to do if that fails. It does not bound the time either: the
// caller's context does.
package hook
