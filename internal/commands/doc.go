// Package commands contains the commands get, verify and gc, with which people ask about a workload. The kubectl plugin and the command idalloc share them. The
// two programs differ in how they connect and in their machine-readable formats: kubectl's formats would double the size of the binary that runs in pods.
package commands
