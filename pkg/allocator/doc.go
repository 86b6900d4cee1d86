// Package allocator claims an id for one pod, keeps it, moves it and gives it back.
//
// One goroutine asks one question, duty.Next: what does this process do next, and when is it to ask again? Each answer is carried out by a few
// linear steps, and what came of them is noted in the duty.LockState. Waiting for a slot and holding one are the same loop.
//
//	hear     reads what streams, timers and goroutines have brought. It sends no request.
//	Next     decides.
//	do       carries it out: one step of the protocol, or a wait for more.
//
// Three parts have packages of their own. A source says what is proposed to the pod: package planner if the pods plan, package central if a controller
// does; a further one needs a row in sources. Package work is what the program does. Package duty decides.
//
// The package is for idalloc's own commands and libraries. It may change with any version.
package allocator
