// Package failpoint breaks one write of a program at its exact place: between any two of its writes, the program crashes, stands still or is misled. Only a
// build with the tag failpoints has it. hack/failpoints walks through all of them.
package failpoint
