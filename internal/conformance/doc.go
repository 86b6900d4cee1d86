// Package conformance checks a history step by step against test/proof. Each step must be allowed by the chapters take, gated, tokens and strict of the proof.
// Conditions have the same names in both.
//
// The Checker judges steps. The Recorder derives them only from what is stored, listed and worked on, and not from what a program believes. The simulations and
// kubectl idalloc observe use both. A write is judged when it arrives, because only its sender sees it being sent.
//
// The proof shows that no history of allowed steps ends with two pods at work on one thing. So if a program's history conforms, the program keeps to the
// protocol. If it does not conform, the first refused step shows where the program leaves the protocol, long before two pods are at work.
package conformance
