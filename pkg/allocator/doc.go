// Package allocator claims an id for one pod, keeps it, moves it and gives it back.
//
// One goroutine asks one question, duty.Next: what does this process do next, and when is it to ask again? Each answer is carried out by a few
// linear steps, and what came of them is noted in the duty.LockState. Waiting for a slot and holding one are the same loop.
//
//	hear     takes in what streams, timers and goroutines have brought. It sends no request.
//	Next     decides.
//	do       carries it out: one step of the protocol, or a wait for more.
//
// The package is for idalloc's own commands and libraries. It may change with any version.
package allocator
