// Package allocator claims an id for one pod, keeps it, moves it and gives it back.
//
// One goroutine repeatedly asks duty.Next what to do next and when to ask again. A few linear steps carry out each answer and record the result in the
// duty.LockState. Waiting for a slot and holding one are the same loop.
//
//	hear     reads the news from streams, timers and goroutines. It sends no request.
//	Next     decides.
//	do       carries the decision out: one step of the protocol, or a wait.
//
// Three parts have packages of their own. A source reads what is proposed to the pod: package planner if the pods plan, package central if a controller
// does. Another source needs a row in sources. Package work tracks the program's work: it publishes the identity and stops the work. Package duty decides.
//
// The package is for idalloc's own commands and libraries. It may change with any version.
package allocator
