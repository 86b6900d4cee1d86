// Mutation makes mutants of the product by itself and sees which of them the tests notice. "make mutation" starts it;
// docs/robustness.md says what it is for. A mutant that nothing notices is a condition that nobody tests, or code that does nothing.
//
//	go -C test/mutation run . -packages=./pkg/allocator/proposal -table="$PWD/mutants.csv"
//
// It changes idalloc's root module, the one at or above the working directory, unless -C names another module. Patterns of -packages and
// the file of -equivalent are below that module's root; the file of -table is below the working directory, as the shell has it.
//
// # What is changed
//
//	negate          a condition, or what a function returns as bool
//	drop-operand    one side of && or ||
//	drop-statement  an assignment, a call, a guard, a loop, a jump (statements that only log stay)
//	drop-field      one field of a composite literal
//	swap            two adjacent statements that touch the same things, or that both call or return
//	compare         < becomes <=, > becomes >=, and the other way round
//	constant        0 becomes 1, n becomes n+1, a duration becomes 0, true becomes false, min becomes max, + becomes -;
//	                not what is returned beside an error or false
//	nil-error       an error that is returned becomes nil
//
// A change never moves lines. It leaves what it drops in the text, where it is never reached, so that variables stay in use.
//
// # How a mutant is judged
//
// The tree is never touched: go build, go test and the simulator get the changed file by an overlay. Most mutants of a package need no build of
// their own: one program has them all, and an environment variable says which one it is. The first that notices ends it:
//
//  1. the type checker: such a mutant does not compile;
//  2. the tests of the package itself, then (without -own) those of each package that imports it, as far as they run the changed line at
//     all (their coverage is taken once at the start). A test that runs much longer than it did before, or takes a lot of memory, has noticed;
//  3. the compiler: where it makes the same machine code as before, the mutant is equivalent;
//  4. with -simulate=n, n histories of test/simulation, all faults, the same ones for each mutant;
//  5. with -envtest=REGEXP, the specs of test/envtest/allocation whose text fits.
//
// Properties are drawn with a fixed seed, so one tree gives one table.
//
// # Names
//
// A mutant is called by its package, function, kind, and a hash of its statement, so that its name survives changes elsewhere. The
// file equivalent.txt lists the mutants that nobody can notice, each with the reason; they are not run. A line that names no mutant any more is
// told at the end.
package main
