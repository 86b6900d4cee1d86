// Package check tells what a cluster has of idalloc: what is installed, whether it is in force, and what the controller may do. It reads, and has
// the API server try pods in dry runs. It changes nothing.
package check
