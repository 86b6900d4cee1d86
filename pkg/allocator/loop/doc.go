// Package loop claims an id for one pod, keeps it, moves it and gives it back, by protocol 2. It is to take the place of package allocator.
//
// One goroutine asks one question, duty.Next: what does this process do next, and when is it to ask again? Each answer is carried out by a few
// linear steps, and what came of them is noted in the duty.Tenure. Waiting for a slot and holding one are the same loop.
//
//	hear     takes in what streams, timers and goroutines have brought. It sends no request.
//	Next     decides.
//	do       carries it out: one step of the protocol, or a wait for more.
package loop
