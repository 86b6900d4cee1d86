// Package check reports which parts of idalloc a cluster has: what is installed, whether it is in force, and what the controller may do. It reads, and creates
// pods in dry runs. It changes nothing.
package check
