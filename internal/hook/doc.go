// Package hook tells "idalloc watch" when a workload has stopped its work under an id. A Command stops the workload. A Gate
// receives the workload's report that it has stopped. It is for package agent.
//
// The package does not decide when to stop a workload, or what to do if that fails. It does not bound the time either: the
// caller's context does.
package hook
