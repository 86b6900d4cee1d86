// Package commands has the commands get, verify and gc, with which people ask about a workload. The kubectl plugin and the command idalloc have
// them in common. The two differ in how they connect and in the formats for programs: those of kubectl would double the binary that runs in
// pods.
package commands
