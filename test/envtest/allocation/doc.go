// Package allocation holds the suites that run idalloc under real controllers: the command in the
// pods of a process node, and package idalloc inside the test process where a spec has to see or break
// its requests.
//
// A spec is here if only a real API server, real controllers or real processes can show what it says. What the protocol does about
// faults and races is the simulation's (test/simulation), and what a plan decides is a case of pkg/allocator/proposal/testdata.
//
// Specs with the label nightly take long. -ginkgo.label-filter='!nightly' leaves them out.
//
// Every spec ends with the overlap check. The programs in pods log which id they act under, and no two pods may have shown one id at the same moment.
package allocation
