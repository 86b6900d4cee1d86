// Package conformance checks a history, step by step, against what test/proof proves: each step must be one that its chapters take, gated, tokens and strict
// allow. A condition has the same name here and there.
//
// The Checker judges steps. The Recorder makes them of what is stored, of what lists return and of what is worked on, and of nothing that a program
// believes. The simulations and kubectl idalloc observe use both. A write is judged when it arrives: nobody else sees it being sent.
//
// The proof says that no history of allowed steps ends with two pods at work on one thing. So a history that a program made, and that conforms, shows that
// the program keeps to the protocol, and one that does not conform shows where it leaves the protocol, long before two are at work.
package conformance
